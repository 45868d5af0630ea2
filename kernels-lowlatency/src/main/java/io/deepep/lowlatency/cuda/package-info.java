/** Low-latency mode on GPUs: launchers of the kernels in {@code src/main/cuda}. */
package io.deepep.lowlatency.cuda;
