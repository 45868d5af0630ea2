/**
 * Expert parallelism for DJL on PyTorch: {@link io.deepep.djl.ExpertParallelMoE}, a block whose
 * experts are spread over ranks; weights by expert range; and DJL's arrays as tensors without
 * copies.
 */
package io.deepep.djl;
