package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.OracleMismatch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What processes agree on after each round; here they are threads. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LaunchedRanksTest {
    private static final int NUM_RANKS = 3;

    private interface Body {
        void run(int rank, LaunchedRanks ranks);
    }

    private static void onEach(Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        try (LaunchedRanks ranks = new LaunchedRanks(communicator)) {
                            body.run(communicator.rank(), ranks);
                        }
                    });
        }
    }

    private static RankFailure wrong(int rank) {
        return new RankFailure(rank, new OracleMismatch("row 3 of rank " + rank));
    }

    private static RankFailure broken(int rank) {
        return new RankFailure(rank, new IllegalStateException("rank " + rank + " fell over"));
    }

    @Test
    void theSlowestOfAllIsTheTimeOfARound() throws InterruptedException {
        onEach(
                (rank, ranks) -> {
                    assertThat(ranks.numRanks()).isEqualTo(NUM_RANKS);
                    assertThat(ranks.localRanks()).containsExactly(rank);
                    assertThat(ranks.meet(100L + rank, null)).isEqualTo(102);
                });
    }

    @Test
    void aWrongResultOfOneIsAFailureOfAll() throws InterruptedException {
        onEach(
                (rank, ranks) -> {
                    RankFailure failure =
                            catchThrowableOfType(
                                    RankFailure.class,
                                    () -> ranks.meet(1, rank == 1 ? wrong(1) : null));
                    assertThat(failure).hasMessage("rank 1: row 3 of rank 1");
                    assertThat(failure).hasCauseInstanceOf(OracleMismatch.class);
                    assertThat(ranks.meet(1, null)).isEqualTo(1);
                });
    }

    /** All have to start anew, or none. */
    @Test
    void theWorstFailureDecides() throws InterruptedException {
        onEach(
                (rank, ranks) ->
                        assertThatThrownBy(() -> ranks.meet(1, rank == 2 ? broken(2) : wrong(rank)))
                                .isInstanceOf(RankFailure.class)
                                .hasMessage("rank 2: rank 2 fell over")
                                .hasCauseInstanceOf(IllegalStateException.class));
    }

    @Test
    void tensorsOfAllRanksOfAnyShape() throws InterruptedException {
        assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "this system has no /proc");
        onEach(
                (rank, ranks) -> {
                    for (int round = 0; round < 2; round++) {
                        List<Tensor> local =
                                new ArrayList<>(Collections.nCopies(NUM_RANKS, (Tensor) null));
                        local.set(rank, tensor(rank, round));
                        List<Tensor> all = ranks.gather(local);
                        for (int peer = 0; peer < NUM_RANKS; peer++) {
                            Tensor expected = tensor(peer, round);
                            if (expected == null) {
                                assertThat(all.get(peer)).isNull();
                            } else {
                                assertThat(all.get(peer).shape()).isEqualTo(expected.shape());
                                assertThat(
                                                HostTensors.firstDifference(
                                                        HostTensors.copyOf(all.get(peer)),
                                                        HostTensors.copyOf(expected)))
                                        .isEqualTo(-1);
                            }
                        }
                        ranks.release();
                    }
                });
    }

    /** With gaps between rows, without rows, and none at all. */
    private static Tensor tensor(int rank, int round) {
        if (rank == 2) {
            return round == 0 ? null : HostTensors.allocate(DType.BF16, 0, 8);
        }
        Tensor rows = HostTensors.allocate(DType.F32, 5 + rank, 7);
        for (int row = 0; row < rows.size(0); row++) {
            rows.setFloat(100 * rank + 10 * round + row, row, 3);
        }
        return rank == 0 ? rows : HostTensors.withRowGap(rows, 3);
    }
}
