/** Allocates the NVL and RDMA buffers of a rank on a GPU, and shares them with its peers. */
package io.deepep.buffer.memory;
