package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireClosed;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requireForeign;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalMisuses;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Everything that can be done wrong in low-latency mode: each gives its own clear error on every
 * rank concerned, and nothing hangs. Where only rank 1 errs, a call that starts anything leaves the
 * ranks out of step and fails in the good calls that follow.
 */
@BackendSuite
public record LowLatencyBadInputConformance(TestBackend backend) {
    /** Shorter than {@link Misbehaviour#SHORT}. */
    private static final Duration LATE = Duration.ofMillis(50);

    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(8, 128, 8, 2);

    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.lowlatency.LowLatencyMisuses#all")
    public void misuse(Misuse<LowLatencyMisuses.Rank> misuse) {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                Ranks.four(backend()),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
                    if (context.rank() == CULPRIT) {
                        requireRefused(misuse, new LowLatencyMisuses.Rank(rank, handle));
                    }
                    rank.combine(handle);
                    rank.roundTrip(LowLatencyFormat.BF16);
                });
    }

    /** A handle is its buffer's: another buffer refuses it. */
    @Test
    public void foreignHandle() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                Ranks.four(backend()),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    Buffer.Builder second =
                            Ranks.builder(backend(), context.communicator(), Ranks.four(backend()));
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    try (Buffer other = second.lowLatency(shape.limits()).open()) {
                        LowLatencyRank stranger = new LowLatencyRank(context.with(other), world);
                        LowLatencyHandle handle = stranger.dispatch(LowLatencyFormat.FP8).handle();
                        requireForeign(() -> rank.combine(handle));
                        requireForeign(() -> context.buffer().getLowLatencyCombineBuffer(handle));
                    }
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /**
     * The second next dispatch ends a low-latency handle; its memory may hold other tokens by then.
     */
    @Test
    public void staleHandle() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                Ranks.four(backend()),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyDispatchResult old = rank.dispatch(LowLatencyFormat.FP8);
                    LowLatencyCombinePlan prepared = rank.home(old.handle()).build();
                    rank.verify(context.buffer().lowLatencyCombine(prepared));
                    rank.roundTrip(LowLatencyFormat.FP8);
                    rank.roundTrip(LowLatencyFormat.FP8);
                    assertThatThrownBy(() -> rank.combine(old.handle()))
                            .isInstanceOfAny(
                                    IllegalArgumentException.class, IllegalStateException.class);
                    assertThatThrownBy(() -> context.buffer().lowLatencyCombine(prepared))
                            .isInstanceOfAny(
                                    IllegalArgumentException.class, IllegalStateException.class);
                    assertThatThrownBy(
                                    () -> context.buffer().getLowLatencyCombineBuffer(old.handle()))
                            .isInstanceOfAny(
                                    IllegalArgumentException.class, IllegalStateException.class);
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /** The same where all dispatches are of one plan; what was combined is reused. */
    @Test
    public void staleResultOfOnePlan() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                Ranks.four(backend()),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Buffer buffer = context.buffer();
                    LowLatencyDispatchPlan plan =
                            rank.plan(LowLatencyFormat.FP8).receiveHook(true).build();
                    Supplier<LowLatencyDispatchResult> dispatch =
                            () -> {
                                LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan);
                                result.receiveHook().run();
                                return rank.verify(result, LowLatencyFormat.FP8);
                            };
                    LowLatencyDispatchResult old = dispatch.get();
                    LowLatencyCombinePlan prepared = rank.home(old.handle()).build();
                    var _ = dispatch.get();
                    LowLatencyDispatchResult latest = dispatch.get();
                    String why = "now holds dispatch 3";
                    requireStale(() -> rank.combine(old.handle()), why);
                    requireStale(() -> buffer.lowLatencyCombine(prepared), why);
                    requireStale(() -> buffer.getLowLatencyCombineBuffer(old.handle()), why);
                    requireStale(() -> old.handle().srcInfo(), why);
                    requireStale(() -> old.handle().layoutRange(), why);
                    requireStale(old.receiveHook()::run, why);
                    rank.combine(latest.handle());
                    rank.combine(dispatch.get().handle());
                    assertThat(dispatch.get()).isSameAs(latest);
                    rank.combine(latest.handle());
                });
    }

    private static void requireStale(ThrowingCallable call, String why) {
        assertThatThrownBy(call)
                .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class)
                .hasMessageContaining(why);
    }

    @Test
    public void closedBuffer() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                Ranks.four(backend()),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
                    Buffer buffer = context.buffer();
                    buffer.close();
                    buffer.close();
                    requireClosed(() -> rank.roundTrip(LowLatencyFormat.FP8));
                    requireClosed(() -> rank.combine(handle));
                    requireClosed(() -> buffer.getLowLatencyCombineBuffer(handle));
                    requireClosed(buffer::cleanLowLatencyBuffer);
                    requireClosed(buffer::lowLatencyQueryMask);
                    requireClosed(buffer::lowLatencyCleanMask);
                    int other = (context.rank() + 1) % context.communicator().size();
                    requireClosed(() -> buffer.lowLatencyUpdateMask(other, true));
                });
    }

    @Cases
    @GroupSource({
        "1, 4, 8",
        "1, 4, -2",
        "1, 4, 9223372036854775807",
        "1, 4, -9223372036854775808",
        "2, 2, 8",
        "2, 2, -2"
    })
    public void expertOutOfRange(int nodes, int ranksPerNode, long expert) {
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 10, 128, 3, 8);
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Tensor idx = context.download(rank.topkIdx());
                    if (context.rank() == CULPRIT) {
                        idx.setLong(expert, 9, 2);
                    }
                    LowLatencyDispatchPlan plan =
                            LowLatencyDispatchPlan.builder(rank.x(), context.upload(idx)).build();
                    for (int i = 0; i < 2; i++) {
                        requireRouting(
                                () ->
                                        context.buffer()
                                                .lowLatencyDispatch(plan)
                                                .event()
                                                .synchronize(),
                                "=" + expert);
                    }
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void absentFromDispatch(int nodes, int ranksPerNode) {
        LowLatencyWorld world = LowLatencyMisuses.SHAPE.world(9);
        withoutOneRank(
                Ranks.topology(nodes, ranksPerNode),
                world,
                (context, meet) -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    meet.run();
                    for (int round = 0; round < 5; round++) {
                        rank.roundTrip(LowLatencyFormat.FP8);
                    }
                    meet.run();
                    // In the middle of its loop, one rank stops.
                    if (context.rank() != CULPRIT) {
                        requireTimeout(
                                context.rank(),
                                "dispatch",
                                () -> rank.roundTrip(LowLatencyFormat.FP8));
                        requireFailed(() -> rank.roundTrip(LowLatencyFormat.FP8));
                    }
                });
    }

    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void absentFromCombine(int nodes, int ranksPerNode) {
        LowLatencyWorld world = LowLatencyMisuses.SHAPE.world(9);
        withoutOneRank(
                Ranks.topology(nodes, ranksPerNode),
                world,
                (context, meet) -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    meet.run();
                    if (context.rank() == CULPRIT) {
                        // That the others have waited for its dispatch says nothing of its combine.
                        LockSupport.parkNanos(LATE.toNanos());
                    }
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), "combine", () -> rank.combine(handle));
                        requireFailed(() -> rank.combine(handle));
                    }
                });
    }

    private void withoutOneRank(EpTopology topology, LowLatencyWorld world, Misbehaviour.Act act) {
        Misbehaviour.withoutOneRank(
                backend(),
                topology,
                b -> b.lowLatency(LowLatencyMisuses.SHAPE.limits()),
                act,
                context -> new LowLatencyRank(context, world).roundTrip(LowLatencyFormat.FP8));
    }

    /** Ranks that want different buffers all learn it, with both values. */
    @Test
    public void differentLimitsAtOpen() {
        LowLatencyLimits other = new LowLatencyLimits(8, 128, 16, 2);
        NormalLimits normal = NormalMisuses.LIMITS;
        requireOpenMismatch(
                (builder, culprit) -> builder.lowLatency(culprit ? other : LIMITS),
                "numExperts=16",
                "numExperts=8");
        requireOpenMismatch(
                (builder, culprit) -> builder.normal(normal).lowLatency(culprit ? null : LIMITS),
                "null",
                "numExperts=8");
    }

    private void requireOpenMismatch(Misbehaviour.Options options, String... mentions) {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Misbehaviour.requireOpenMismatch(
                backend(),
                options,
                b -> b.lowLatency(shape.limits()),
                context -> new LowLatencyRank(context, world).roundTrip(LowLatencyFormat.FP8),
                mentions);
    }

    @Cases
    @GroupSource("1, 4")
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator ->
                        assertThatThrownBy(
                                        Ranks.builder(backend(), communicator, topology)
                                                        .lowLatency(
                                                                new LowLatencyLimits(8, 128, 6, 2))
                                                ::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining(
                                        "numExperts=6 is not a multiple of numRanks=4"));
    }
}
