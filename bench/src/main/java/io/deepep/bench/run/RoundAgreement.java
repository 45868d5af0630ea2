package io.deepep.bench.run;

/**
 * What happens when the local ranks have done a round of work: where there are others, the
 * processes tell each other how it went.
 */
@FunctionalInterface
interface RoundAgreement {
    /** For ranks that are all threads of this process. */
    RoundAgreement LOCAL =
            (nanos, failure) -> {
                if (failure != null) {
                    throw failure;
                }
                return nanos;
            };

    /**
     * Ends a round.
     *
     * @param nanos of the slowest local rank
     * @param failure of a local rank, or null
     * @return nanoseconds of the slowest rank of all
     * @throws RankFailure in every process, if a rank failed in any
     */
    long meet(long nanos, RankFailure failure);
}
