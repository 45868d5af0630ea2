/**
 * The plugin for DJL Serving. It finds exchanges through JMX, because the server loads plugins and
 * models by class loaders that do not see each other, and needs nothing but the JDK and the
 * server's own libraries.
 */
package io.deepep.djl.serving;
