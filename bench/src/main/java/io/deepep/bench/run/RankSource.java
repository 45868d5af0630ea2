package io.deepep.bench.run;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import java.util.List;
import java.util.stream.IntStream;

/** The ranks that this process runs, and how they reach all others. */
public interface RankSource extends AutoCloseable, RoundAgreement {
    /** R, ranks of other processes included. */
    int numRanks();

    /** The ranks that are threads of this process, ascending. */
    List<Integer> localRanks();

    /** A local rank's way to the others. */
    Communicator communicator(int rank);

    /** Starts over with new communicators: after a failure the old ones may be out of step. */
    void renew();

    @Override
    default long meet(long nanos, RankFailure failure) {
        return RoundAgreement.LOCAL.meet(nanos, failure);
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
