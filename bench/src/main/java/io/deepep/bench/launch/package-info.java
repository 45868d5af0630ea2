/** Starts one process for each rank on this host. */
package io.deepep.bench.launch;
