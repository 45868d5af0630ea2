package io.deepep;

/**
 * How many of this rank's tokens each rank, node and expert gets.
 *
 * @param numTokensPerRank I32 [R], tokens this rank sends to each rank
 * @param numTokensPerRdmaRank I32 [numRdmaRanks], tokens sent to each node; null when the group is
 *     one node
 * @param numTokensPerExpert I32 [E], selections of each expert
 * @param isTokenInRank BOOL [T,R], whether a token goes to a rank
 * @param event when the tensors are ready
 */
public record DispatchLayout(
        Tensor numTokensPerRank,
        Tensor numTokensPerRdmaRank,
        Tensor numTokensPerExpert,
        Tensor isTokenInRank,
        Event event) {}
