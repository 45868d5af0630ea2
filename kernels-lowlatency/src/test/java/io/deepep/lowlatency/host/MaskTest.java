package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks that are masked, dead or late. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class MaskTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 8, 3);
    private static final int RANKS = 4;
    private static final int DEAD = 1;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    @Test
    void aMaskedRankIsAbsent() throws Exception {
        new Group(RANKS, LIMITS)
                .run(
                        rank -> {
                            if (rank.rank() != DEAD) {
                                rank.kernels().updateMask(DEAD, true);
                                assertThat(rank.kernels().queryMask()).containsExactly(0, 1, 0, 0);
                                for (int i = 0; i < 5; i++) {
                                    roundTripWithoutDead(rank, Batch.random(LIMITS, RANKS, 3, i));
                                }
                                rank.kernels().updateMask(DEAD, false);
                            }
                            rank.clean();
                            rank.roundTrip(Batch.random(LIMITS, RANKS, 3, 100));
                        });
    }

    private static void roundTripWithoutDead(Group.Rank rank, Batch batch) {
        LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
        batch.verifyDispatch(rank.rank(), got, Set.of(DEAD));
        Tensor home = rank.combined(rank.home(batch, got.recvX(), got));
        batch.verifyEcho(rank.rank(), home, Set.of(DEAD));
    }

    @Test
    void aDeadRankIsMaskedWhileOthersAreServed() throws Exception {
        new Group(RANKS, LIMITS)
                .timeout(Duration.ofSeconds(1))
                .maskTimedOut()
                .run(
                        rank -> {
                            if (rank.rank() != DEAD) {
                                for (int i = 0; i < 5; i++) {
                                    roundTripWithoutDead(rank, Batch.random(LIMITS, RANKS, 3, i));
                                }
                                assertThat(rank.kernels().queryMask()).containsExactly(0, 1, 0, 0);
                            }
                        });
    }

    @Test
    void withoutMaskingTheDeadRankIsNamed() throws Exception {
        new Group(RANKS, LIMITS)
                .timeout(Duration.ofSeconds(1))
                .run(
                        rank -> {
                            if (rank.rank() != DEAD) {
                                var dispatch =
                                        rank.dispatch(Batch.random(LIMITS, RANKS, 3, 1), BF16);
                                dispatch.begin();
                                assertThatThrownBy(dispatch::complete)
                                        .isInstanceOf(DeepEpTimeoutException.class)
                                        .extracting(e -> ((DeepEpTimeoutException) e).peer())
                                        .isEqualTo(DEAD);
                            }
                            rank.barrier();
                        });
    }

    /**
     * A rank was masked when tokens went out and is back when the results come home: it sends
     * nothing for them, so it must not be counted with what an earlier combine left in its slots.
     */
    @Test
    void unmaskedBetweenDispatchAndCombine() throws Exception {
        Batch batch = Batch.cyclic(LIMITS, RANKS, 6, 3);
        new Group(RANKS, LIMITS)
                .run(
                        rank -> {
                            // Leaves rows in the slots of both parities.
                            rank.roundTrip(batch);
                            rank.roundTrip(batch);
                            Set<Integer> unheard =
                                    rank.rank() == DEAD ? Set.of(0, 2, 3) : Set.of(DEAD);
                            unheard.forEach(peer -> rank.kernels().updateMask(peer, true));
                            LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
                            unheard.forEach(peer -> rank.kernels().updateMask(peer, false));
                            Tensor home = rank.combined(rank.home(batch, got.recvX(), got));
                            batch.verifyEcho(rank.rank(), home, unheard);
                            rank.roundTrip(batch);
                        });
    }

    /** Only the receiver had masked: the source sent its tokens, but nobody computed on them. */
    @Test
    void tokensThatTheReceiverDidNotTake() throws Exception {
        Batch batch = Batch.cyclic(LIMITS, RANKS, 6, 3);
        new Group(RANKS, LIMITS)
                .run(
                        rank -> {
                            rank.roundTrip(batch);
                            rank.roundTrip(batch);
                            var dispatch = rank.dispatch(batch, BF16);
                            dispatch.begin();
                            boolean deaf = rank.rank() == 0;
                            rank.kernels().updateMask(DEAD, deaf);
                            dispatch.complete();
                            rank.kernels().updateMask(DEAD, false);
                            var got = dispatch.result(Event.completed(), null);
                            batch.verifyDispatch(rank.rank(), got, deaf ? Set.of(DEAD) : Set.of());
                            Tensor home = rank.combined(rank.home(batch, got.recvX(), got));
                            batch.verifyEcho(
                                    rank.rank(), home, rank.rank() == DEAD ? Set.of(0) : Set.of());
                            rank.roundTrip(batch);
                        });
    }

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
                                                    LowLatencyDispatchRequest.builder(
                                                                    batch.x(rank.rank()),
                                                                    batch.topkIdx(rank.rank()))
                                                            .waitCostStats(waits)
                                                            .build());
                            if (rank.rank() == DEAD) {
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
                            if (rank.rank() != DEAD) {
                                for (int source = 0; source < RANKS; source++) {
                                    assertThat(waits.getLong(source) > 0)
                                            .as("rank %s for rank %s", rank.rank(), source)
                                            .isEqualTo(source == DEAD);
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
