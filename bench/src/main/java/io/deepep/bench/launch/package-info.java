/** Starts the ranks of one host as processes. */
package io.deepep.bench.launch;
