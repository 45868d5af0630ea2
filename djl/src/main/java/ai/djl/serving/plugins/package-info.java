/**
 * Declarations of DJL Serving that a plugin is compiled against. DJL Serving is in no Maven
 * repository, so its interface is declared here and left out of the jar; the server loads its own.
 */
package ai.djl.serving.plugins;
