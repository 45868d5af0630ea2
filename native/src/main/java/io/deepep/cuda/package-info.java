/** The GPU runtime: the CUDA driver through FFM, fatbins, symmetric memory between GPUs. */
package io.deepep.cuda;
