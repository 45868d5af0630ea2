package io.deepep.bench.run;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import java.util.List;
import java.util.stream.IntStream;

/** The ranks that this process runs, and how they reach all others. */
public interface RankSource extends AutoCloseable {
    /** R, ranks of other processes included. */
    int numRanks();

    /** The ranks that are threads of this process, ascending. */
    List<Integer> localRanks();

    /** A local rank's way to the others. */
    Communicator communicator(int rank);

    /** Starts over with new communicators: after a failure the old ones may be out of step. */
    void renew();

    /**
     * Ends a round of work: where there are other processes, all tell each other how it went.
     *
     * @param nanos of the slowest local rank
     * @param failure of a local rank, or null
     * @return nanoseconds of the slowest rank of all
     * @throws RankFailure in every process, if a rank failed in any
     */
    default long meet(long nanos, RankFailure failure) {
        if (failure != null) {
            throw failure;
        }
        return nanos;
    }

    /**
     * The slowest of all ranks in each of some runs; collective.
     *
     * @param nanos of the slowest local rank in each
     */
    default long[] slowest(long[] nanos) {
        return nanos;
    }

    @Override
    void close();

    /** All ranks as threads of this process. */
    static RankSource inProcess(int numRanks) {
        return new RankSource() {
            private InProcessGroup group = InProcessGroup.of(numRanks);

            @Override
            public int numRanks() {
                return numRanks;
            }

            @Override
            public List<Integer> localRanks() {
                return IntStream.range(0, numRanks).boxed().toList();
            }

            @Override
            public Communicator communicator(int rank) {
                return group.communicator(rank);
            }

            @Override
            public void renew() {
                group.close();
                group = InProcessGroup.of(numRanks);
            }

            @Override
            public void close() {
                group.close();
            }
        };
    }
}
