package io.deepep;

/**
 * How many of this rank's tokens go to each rank, node and expert. The tensors are on the buffer's
 * device.
 *
 * @param numTokensPerRank I32 [R], tokens that this rank sends to each rank
 * @param numTokensPerRdmaRank I32 [numRdmaRanks], tokens that it sends to each node; null if the
 *     group is a single node
 * @param numTokensPerExpert I32 [E], selections of each expert
 * @param isTokenInRank BOOL [T,R], whether a token goes to a rank
 * @param event done when the tensors are ready
 */
public record DispatchLayout(
        Tensor numTokensPerRank,
        Tensor numTokensPerRdmaRank,
        Tensor numTokensPerExpert,
        Tensor isTokenInRank,
        Event event) {}
