package io.deepep.bench;

import io.deepep.bench.run.Placement;

/**
 * What a command takes where the user gives nothing. The host backend gets fewer tokens, so that a
 * test with all its checks ends within a minute on two cores.
 *
 * @param hostTokens tokens per rank where Java moves the bytes
 * @param cudaTokens tokens per rank on GPUs
 * @param numExperts experts of all ranks
 */
record ShapeDefaults(int hostTokens, int cudaTokens, int numExperts) {
    int numTokens(Placement placement) {
        return placement.isCuda() ? cudaTokens : hostTokens;
    }

    /** For the help text. */
    String tokensText() {
        return hostTokens == cudaTokens
                ? Integer.toString(hostTokens)
                : ("%s on the host backend (so that all checks take less than a minute on two cores),"
                                + " %s on GPUs")
                        .formatted(hostTokens, cudaTokens);
    }
}
