/** Normal mode on the CPU: readable Java over the same layouts that the GPU kernels use. */
package io.deepep.normal.host;
