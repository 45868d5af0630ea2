/** Where the NVL and RDMA buffers of a rank on a GPU come from, and how its peers reach them. */
package io.deepep.buffer.memory;
