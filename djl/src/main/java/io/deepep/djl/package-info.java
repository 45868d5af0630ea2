/**
 * Expert parallelism for DJL on PyTorch: {@link io.deepep.djl.ExpertParallelMoE}, a block whose
 * experts are spread over ranks; loading the weights of a rank's experts; and conversion of DJL's
 * arrays to tensors without copies.
 */
package io.deepep.djl;
