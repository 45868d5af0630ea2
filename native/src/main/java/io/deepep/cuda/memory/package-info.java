/** Memory of GPUs: own, pooled, pinned, and that of other ranks. */
package io.deepep.cuda.memory;
