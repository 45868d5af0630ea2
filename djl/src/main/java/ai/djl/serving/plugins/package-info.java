/**
 * What a plugin must know of DJL Serving to be compiled. DJL Serving is on no Maven repository, so
 * its interface is declared here and left out of the jar: in the server the server's own is loaded.
 */
package ai.djl.serving.plugins;
