package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireClosed;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requireForeign;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static io.deepep.testkit.conformance.Misbehaviour.withoutOneRank;
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
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
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
public record LowLatencyBadInputConformance(TestBackend backend) implements RankGroup {
    /** Shorter than {@link Misbehaviour#SHORT}. */
    private static final Duration LATE = Duration.ofMillis(50);

    private static final LowLatencyShape SHAPE = LowLatencyMisuses.SHAPE;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(8, 128, 2, 8);

    @Override
    public void limit(Buffer.Builder builder) {
        builder.lowLatency(SHAPE.limits());
    }

    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.lowlatency.LowLatencyMisuses#all")
    public void misuse(Misuse<LowLatencyMisuses.Rank> misuse, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
        if (context.isCulprit()) {
            requireRefused(misuse, new LowLatencyMisuses.Rank(rank, handle));
        }
        rank.combine(handle);
        rank.roundTrip(LowLatencyFormat.BF16);
    }

    /** A handle is its buffer's: another buffer refuses it. */
    @Test
    public void foreignHandle(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Buffer.Builder second =
                Ranks.builder(backend(), context.communicator(), Ranks.four(backend()));
        try (Buffer other = second.lowLatency(SHAPE.limits()).open()) {
            LowLatencyRank stranger = new LowLatencyRank(context.with(other), rank.world());
            LowLatencyHandle handle = stranger.dispatch(LowLatencyFormat.FP8).handle();
            requireForeign(() -> rank.combine(handle));
            requireForeign(() -> context.buffer().getLowLatencyCombineBuffer(handle));
        }
        rank.roundTrip(LowLatencyFormat.FP8);
    }

    /**
     * The second next dispatch ends a low-latency handle; its memory may hold other tokens by then.
     */
    @Test
    public void staleHandle(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyDispatchResult old = rank.dispatch(LowLatencyFormat.FP8);
        LowLatencyCombinePlan prepared = rank.home(old.handle()).build();
        rank.combine(prepared);
        rank.roundTrip(LowLatencyFormat.FP8);
        rank.roundTrip(LowLatencyFormat.FP8);
        assertThatThrownBy(() -> rank.combine(old.handle()))
                .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class);
        assertThatThrownBy(() -> context.buffer().lowLatencyCombine(prepared))
                .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class);
        assertThatThrownBy(() -> context.buffer().getLowLatencyCombineBuffer(old.handle()))
                .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class);
        rank.roundTrip(LowLatencyFormat.FP8);
    }

    /** The same where all dispatches are of one plan; what was combined is reused. */
    @Test
    public void staleResultOfOnePlan(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Buffer buffer = context.buffer();
        LowLatencyDispatchPlan plan = rank.plan(LowLatencyFormat.FP8).receiveHook(true).build();
        Supplier<LowLatencyDispatchResult> dispatch = () -> rank.dispatch(plan);
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
    }

    private static void requireStale(ThrowingCallable call, String why) {
        assertThatThrownBy(call)
                .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class)
                .hasMessageContaining(why);
    }

    @Test
    public void closedBuffer(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
        Buffer buffer = context.buffer();
        buffer.close();
        buffer.close();
        requireClosed(() -> rank.roundTrip(LowLatencyFormat.FP8));
        requireClosed(() -> rank.combine(handle));
        requireClosed(() -> buffer.getLowLatencyCombineBuffer(handle));
        requireClosed(buffer::cleanLowLatencyBuffer);
        requireClosed(buffer::queryMask);
        requireClosed(buffer::rejoin);
        int other = (context.rank() + 1) % context.communicator().size();
        requireClosed(() -> buffer.updateMask(other, true));
    }

    @Cases({
        "1, 4, 8",
        "1, 4, -2",
        "1, 4, 9223372036854775807",
        "1, 4, -9223372036854775808",
        "2, 2, 8",
        "2, 2, -2"
    })
    public void expertOutOfRange(long expert, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Tensor idx = context.spoiled(rank.topkIdx(), expert, 9, 2);
        LowLatencyDispatchPlan plan = LowLatencyDispatchPlan.builder(rank.x(), idx).build();
        for (int i = 0; i < 2; i++) {
            requireRouting(() -> rank.call(plan), "=" + expert);
        }
        rank.roundTrip(LowLatencyFormat.FP8);
    }

    @Cases({"1, 4", "2, 2"})
    public void absentFromDispatch(RankContext context) {
        withoutOneRank(
                context,
                this,
                hasty -> {
                    LowLatencyRank rank = SHAPE.rank(hasty, 9);
                    hasty.meet();
                    for (int round = 0; round < 5; round++) {
                        rank.roundTrip(LowLatencyFormat.FP8);
                    }
                    hasty.meet();
                    // In the middle of its loop, one rank stops.
                    if (!hasty.isCulprit()) {
                        requireTimeout(
                                hasty.rank(),
                                "dispatch",
                                () -> rank.roundTrip(LowLatencyFormat.FP8));
                        requireFailed(() -> rank.roundTrip(LowLatencyFormat.FP8));
                    }
                });
        SHAPE.rank(context, 9).roundTrip(LowLatencyFormat.FP8);
    }

    @Cases({"1, 4", "2, 2"})
    public void absentFromCombine(RankContext context) {
        withoutOneRank(
                context,
                this,
                hasty -> {
                    LowLatencyRank rank = SHAPE.rank(hasty, 9);
                    hasty.meet();
                    if (hasty.isCulprit()) {
                        // That the others have waited for its dispatch says nothing of its combine.
                        LockSupport.parkNanos(LATE.toNanos());
                    }
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.FP8).handle();
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "combine", () -> rank.combine(handle));
                        requireFailed(() -> rank.combine(handle));
                    }
                });
        SHAPE.rank(context, 9).roundTrip(LowLatencyFormat.FP8);
    }

    /** Ranks that want different buffers all learn it, with both values. */
    @Test
    public void differentLimitsAtOpen() {
        LowLatencyLimits other = new LowLatencyLimits(8, 128, 2, 16);
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
        Misbehaviour.requireOpenMismatch(
                backend(),
                options,
                this,
                context -> SHAPE.rank(context, 9).roundTrip(LowLatencyFormat.FP8),
                mentions);
    }

    @Cases("1, 4")
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder = Ranks.builder(backend(), communicator, topology);
                    requireRefused(
                            IllegalArgumentException.class,
                            "numExperts=6 is not a multiple of numRanks=4; every rank must hold",
                            builder.lowLatency(new LowLatencyLimits(8, 128, 2, 6))::open);
                });
    }
}
