package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Everything that can be done wrong: each gives its own clear error on every rank concerned, and
 * nothing hangs.
 */
public abstract class BadInputConformance extends LowLatencyAgreementConformance {
    private static final Duration SHORT = Duration.ofMillis(300);

    private static void requireTimeout(int rank, ThrowingCallable call) {
        DeepEpTimeoutException error = catchThrowableOfType(DeepEpTimeoutException.class, call);
        assertThat(error).as("a DeepEpTimeoutException on rank " + rank).isNotNull();
        assertThat(error.peer()).as(error.getMessage()).isEqualTo(CULPRIT);
        assertThat(error.rank()).isEqualTo(rank);
        assertThat(error.phase()).isNotBlank();
        assertThat(error.isFatal()).isFalse();
    }

    private static void requireRefusal(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("failed");
    }

    /** What the ranks do of which one does not come. */
    private interface Act {
        void run(RankContext context, Runnable meet);
    }

    /**
     * Runs {@code act} on all ranks but one, over a buffer with a short timeout; another buffer of
     * the group must still work afterwards.
     */
    private void withoutOneRank(EpTopology topology, Act act) {
        NormalWorld world = NormalMisuses.world(topology.numRanks());
        LowLatencyLimits fast = LowLatencyMisuses.SHAPE.limits();
        LowLatencyWorld fastWorld = LowLatencyMisuses.SHAPE.world(9);
        CountDownLatch over = new CountDownLatch(topology.numRanks() - 1);
        Ranks.run(
                backend(),
                topology,
                b -> b.normal(NormalMisuses.LIMITS).lowLatency(fast),
                context -> {
                    Communicator communicator = context.communicator();
                    try (Buffer hasty =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .lowLatency(fast)
                                    .timeout(SHORT)
                                    .open()) {
                        act.run(context.with(hasty), () -> communicator.barrier(Ranks.TIMEOUT));
                        over.countDown();
                        // The absent rank stays away until the others have given up.
                        assertThat(over.await(20, TimeUnit.SECONDS)).isTrue();
                    }
                    new NormalRank(context, world).roundTrip();
                    new LowLatencyRank(context, fastWorld).roundTrip(LowLatencyFormat.FP8);
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2", "4, 1"})
    public void absentFromDispatch(int nodes, int ranksPerNode) {
        EpTopology topology = Ranks.topology(nodes, ranksPerNode);
        NormalWorld world = NormalMisuses.world(topology.numRanks());
        withoutOneRank(
                topology,
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), rank::roundTrip);
                        requireRefusal(rank::roundTrip);
                    }
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2", "4, 1"})
    public void absentFromCombine(int nodes, int ranksPerNode) {
        EpTopology topology = Ranks.topology(nodes, ranksPerNode);
        NormalWorld world = NormalMisuses.world(topology.numRanks());
        withoutOneRank(
                topology,
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    meet.run();
                    DispatchHandle handle = rank.dispatch(rank.request(), world.check()).handle();
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), () -> rank.combine(handle, world.check()));
                        requireRefusal(() -> rank.combine(handle, world.check()));
                    }
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void absentFromLowLatencyDispatch(int nodes, int ranksPerNode) {
        LowLatencyWorld world = LowLatencyMisuses.SHAPE.world(9);
        withoutOneRank(
                Ranks.topology(nodes, ranksPerNode),
                (context, meet) -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), () -> rank.roundTrip(LowLatencyFormat.FP8));
                        requireRefusal(() -> rank.roundTrip(LowLatencyFormat.FP8));
                    }
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void absentFromLowLatencyCombine(int nodes, int ranksPerNode) {
        LowLatencyWorld world = LowLatencyMisuses.SHAPE.world(9);
        withoutOneRank(
                Ranks.topology(nodes, ranksPerNode),
                (context, meet) -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    meet.run();
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), () -> rank.combine(handle));
                        requireRefusal(() -> rank.combine(handle));
                    }
                });
    }

    @Test
    public void absentFromOpen() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    if (communicator.rank() == CULPRIT) {
                        return;
                    }
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .timeout(SHORT);
                    requireTimeout(communicator.rank(), builder::open);
                });
    }

    /**
     * Ranks that want different buffers all learn it, with both values; afterwards the group can
     * open one.
     */
    @Test
    public void differentLimitsAtOpen() {
        NormalLimits other = NormalLimits.of(17, 256, 4, 16);
        requireOpenMismatch(
                (builder, culprit) -> builder.normal(culprit ? other : NormalMisuses.LIMITS),
                "maxTokens=17",
                "maxTokens=16");
        LowLatencyLimits fast = new LowLatencyLimits(8, 128, 8, 2);
        LowLatencyLimits otherFast = new LowLatencyLimits(8, 128, 16, 2);
        requireOpenMismatch(
                (builder, culprit) -> builder.lowLatency(culprit ? otherFast : fast),
                "numExperts=16",
                "numExperts=8");
        requireOpenMismatch(
                (builder, culprit) ->
                        builder.normal(NormalMisuses.LIMITS).ranksPerNode(culprit ? 2 : 4),
                "ranksPerNode",
                "2",
                "4");
        requireOpenMismatch(
                (builder, culprit) ->
                        builder.normal(NormalMisuses.LIMITS).lowLatency(culprit ? null : fast),
                "null",
                "numExperts=8");
    }

    /** How ranks fill in their options. */
    private interface Options {
        void fill(Buffer.Builder builder, boolean culprit);
    }

    private void requireOpenMismatch(Options options, String... mentions) {
        EpTopology topology = Ranks.topology(1, 4);
        NormalWorld world = NormalMisuses.world(4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder = Ranks.builder(backend(), communicator, topology);
                    options.fill(builder, communicator.rank() == CULPRIT);
                    RankMismatchException error =
                            catchThrowableOfType(RankMismatchException.class, builder::open);
                    assertThat(error).as("a RankMismatchException on every rank").isNotNull();
                    assertThat(error)
                            .hasMessageContainingAll(mentions)
                            .hasMessageContaining("rank 1");
                    Buffer.Builder good =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS);
                    try (Buffer buffer = good.open()) {
                        new NormalRank(new RankContext(backend(), communicator, buffer), world)
                                .roundTrip();
                    }
                });
    }

    /** A rank whose own options are impossible says so; the others are told whose. */
    @Test
    public void tooSmallAnExplicitSizeOnOneRank() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    boolean culprit = communicator.rank() == CULPRIT;
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .numNvlBytes(culprit ? 128 : 0);
                    if (culprit) {
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("numNvlBytes=128");
                    } else {
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(RankMismatchException.class)
                                .hasMessageContaining("rank 1");
                    }
                });
    }

    @Test
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology), "lowLatency");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .ranksPerNode(3)
                                    .normal(NormalMisuses.LIMITS),
                            "numRanks=4 is not a multiple of numNvlRanks=3");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .lowLatency(new LowLatencyLimits(8, 128, 6, 2)),
                            "numExperts=6 is not a multiple of numRanks=4");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .timeout(Duration.ZERO),
                            "timeout=PT0S");
                });
    }

    private static void requireImpossible(Buffer.Builder builder, String mentions) {
        assertThatThrownBy(builder::open)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(mentions);
    }
}
