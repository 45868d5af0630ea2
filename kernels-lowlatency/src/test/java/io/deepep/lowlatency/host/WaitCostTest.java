package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whom waiting is charged to. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class WaitCostTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 3, 8);
    private static final int RANKS = 4;
    private static final int LATE = 1;

    /** The time waited is the late rank's, not that of the ranks behind it. */
    @Test
    void waitCostsBlameTheLateRank() throws Exception {
        Batch batch = Batch.cyclic(LIMITS, RANKS, 6, 3);
        CountDownLatch othersSent = new CountDownLatch(RANKS - 1);
        List<Thread> others = new CopyOnWriteArrayList<>();
        new Group(RANKS, LIMITS)
                .run(
                        rank -> {
                            Tensor waits = Tensor.allocate(Arena.ofAuto(), DType.I64, RANKS);
                            var dispatch =
                                    rank.kernels()
                                            .prepareDispatch(
                                                    LowLatencyDispatchPlan.builder(
                                                                    batch.x(rank.rank()),
                                                                    batch.topkIdx(rank.rank()))
                                                            .waitCostStats(waits)
                                                            .build());
                            if (rank.rank() == LATE) {
                                othersSent.await();
                                awaitParked(others);
                                dispatch.begin();
                            } else {
                                dispatch.begin();
                                others.add(Thread.currentThread());
                                othersSent.countDown();
                                othersSent.await();
                            }
                            dispatch.complete();
                            if (rank.rank() != LATE) {
                                for (int source = 0; source < RANKS; source++) {
                                    assertThat(waits.getLong(source) > 0)
                                            .as("rank %s for rank %s", rank.rank(), source)
                                            .isEqualTo(source == LATE);
                                }
                            }
                        });
    }

    /** Threads park without a time limit only for the latch, so these wait for a flag. */
    private static void awaitParked(List<Thread> threads) throws InterruptedException {
        while (!threads.stream().allMatch(t -> t.getState() == Thread.State.TIMED_WAITING)) {
            Thread.sleep(1);
        }
    }
}
