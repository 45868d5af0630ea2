/**
 * The plugin for DJL Serving. It finds exchanges and services through JMX, because the class
 * loaders of the server's plugins and models do not see each other. It needs only the JDK and the
 * server's own libraries.
 */
package io.deepep.djl.serving;
