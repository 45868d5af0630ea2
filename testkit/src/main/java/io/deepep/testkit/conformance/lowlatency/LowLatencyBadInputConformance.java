package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireBadIndices;
import static io.deepep.testkit.conformance.Misbehaviour.requireClosed;
import static io.deepep.testkit.conformance.Misbehaviour.requireForeign;
import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
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
import io.deepep.testkit.conformance.AbsenceCases;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalMisuses;
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
public record LowLatencyBadInputConformance(TestBackend backend)
        implements AbsenceCases<LowLatencyHandle> {
    private static final LowLatencyShape SHAPE = LowLatencyMisuses.SHAPE;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(8, 128, 2, 8);

    @Override
    public void limit(Buffer.Builder builder) {
        SHAPE.limit(builder);
    }

    @Override
    public LowLatencyRank rank(RankContext context) {
        return SHAPE.rank(context, 9);
    }

    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.lowlatency.LowLatencyMisuses#all")
    public void misuse(Misuse<LowLatencyMisuses.Rank> misuse, RankContext context) {
        LowLatencyRank rank = rank(context);
        LowLatencyHandle handle = rank.newHandle();
        if (context.isCulprit()) {
            requireRefused(misuse, new LowLatencyMisuses.Rank(rank, handle));
        }
        rank.combine(handle);
        rank.roundTrip(LowLatencyFormat.BF16);
    }

    /** A handle is its buffer's: another buffer refuses it. */
    @Test
    public void foreignHandle(RankContext context) {
        LowLatencyRank rank = rank(context);
        try (Buffer other = context.builder(this).open()) {
            LowLatencyHandle handle = rank(context.with(other)).newHandle();
            requireForeign(() -> rank.combine(handle));
            requireForeign(() -> context.buffer().getLowLatencyCombineBuffer(handle));
        }
        rank.roundTrip();
    }

    /**
     * The second next dispatch ends a low-latency handle; its memory may hold other tokens by then.
     */
    @Test
    public void staleHandle(RankContext context) {
        LowLatencyRank rank = rank(context);
        LowLatencyDispatchResult old = rank.dispatch(LowLatencyFormat.FP8);
        LowLatencyCombinePlan prepared = rank.home(old.handle()).build();
        rank.combine(prepared);
        rank.roundTrip();
        rank.roundTrip();
        String why = "now holds dispatch 3";
        requireStale(() -> rank.combine(old.handle()), why);
        requireStale(() -> context.buffer().lowLatencyCombine(prepared), why);
        requireStale(() -> context.buffer().getLowLatencyCombineBuffer(old.handle()), why);
        rank.roundTrip();
    }

    /** The same where all dispatches are of one plan; what was combined is reused. */
    @Test
    public void staleResultOfOnePlan(RankContext context) {
        LowLatencyRank rank = rank(context);
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
        LowLatencyRank rank = rank(context);
        LowLatencyHandle handle = rank.newHandle();
        Buffer buffer = context.buffer();
        buffer.close();
        buffer.close();
        requireClosed(() -> rank.roundTrip());
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
        LowLatencyRank rank = rank(context);
        Tensor idx = context.spoiled(rank.topkIdx(), expert, 9, 2);
        requireBadIndices(rank, idx, CULPRIT, "=" + expert);
    }

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

    @Cases("1, 4")
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder = Ranks.builder(backend(), communicator, topology);
                    requireIllegal(
                            builder.lowLatency(new LowLatencyLimits(8, 128, 2, 6))::open,
                            "numExperts=6 is not a multiple of numRanks=4; every rank must hold");
                });
    }
}
