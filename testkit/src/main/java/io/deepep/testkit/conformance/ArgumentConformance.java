package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchRequest;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Calls that must be refused at once: only rank 1 makes them, so one that starts anything leaves
 * the ranks out of step and fails in the good calls that follow. Part of {@link
 * BadInputConformance}.
 */
@Timeout(value = 30, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class ArgumentConformance {
    /** The rank that errs. */
    static final int CULPRIT = 1;

    /** The backend under test. */
    protected abstract TestBackend backend();

    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.NormalMisuses#all")
    public void normalMisuse(Misuse<NormalMisuses.Rank> misuse) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(2, 2),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchHandle handle = rank.dispatch(rank.request(), world.check()).handle();
                    if (context.rank() == CULPRIT) {
                        requireRefused(misuse, new NormalMisuses.Rank(rank, handle));
                    }
                    rank.combine(handle, world.check());
                    rank.roundTrip();
                });
    }

    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.LowLatencyMisuses#all")
    public void lowLatencyMisuse(Misuse<LowLatencyMisuses.Rank> misuse) {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
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

    private static <R> void requireRefused(Misuse<R> misuse, R rank) {
        assertThatThrownBy(() -> misuse.call().make(rank))
                .as(misuse.name())
                .isInstanceOf(misuse.type())
                .hasMessageContaining(misuse.mentions());
    }

    /** A handle is its buffer's: another buffer refuses it, of the same shape or not. */
    @Test
    public void foreignHandles() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        NormalWorld world = NormalMisuses.world(4);
        LowLatencyWorld fast = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.normal(NormalMisuses.LIMITS).lowLatency(shape.limits()),
                context -> {
                    Buffer.Builder second =
                            Ranks.builder(backend(), context.communicator(), shape.topology());
                    try (Buffer other =
                            second.normal(NormalMisuses.LIMITS).lowLatency(shape.limits()).open()) {
                        NormalRank stranger = new NormalRank(context.with(other), world);
                        DispatchHandle handle =
                                stranger.dispatch(stranger.request(), world.check()).handle();
                        refuseForeign(context, new NormalRank(context, world), world, handle);
                        LowLatencyRank fastStranger = new LowLatencyRank(context.with(other), fast);
                        refuseForeign(
                                context,
                                new LowLatencyRank(context, fast),
                                fastStranger.dispatch(LowLatencyFormat.FP8).handle());
                    }
                    new NormalRank(context, world).roundTrip();
                    new LowLatencyRank(context, fast).roundTrip(LowLatencyFormat.FP8);
                });
    }

    private static void refuseForeign(
            RankContext context, NormalRank rank, NormalWorld world, DispatchHandle handle) {
        assertThatThrownBy(() -> rank.combine(handle, world.check()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
        DispatchRequest cached = rank.bare().handle(handle).build();
        assertThatThrownBy(() -> context.buffer().dispatch(cached))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
        assertThatThrownBy(() -> context.buffer().getCombineBuffer(handle))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
    }

    private static void refuseForeign(
            RankContext context, LowLatencyRank rank, LowLatencyHandle handle) {
        assertThatThrownBy(() -> rank.combine(handle))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
        assertThatThrownBy(() -> context.buffer().getNextLowLatencyCombineBuffer(handle))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
    }

    /**
     * The second next dispatch ends a low-latency handle; its memory may hold other tokens by then.
     */
    @Test
    public void staleLowLatencyHandle() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyDispatchResult old = rank.dispatch(LowLatencyFormat.FP8);
                    LowLatencyCombineRequest prepared = rank.home(old.handle()).build();
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
                                    () ->
                                            context.buffer()
                                                    .getNextLowLatencyCombineBuffer(old.handle()))
                            .isInstanceOfAny(
                                    IllegalArgumentException.class, IllegalStateException.class);
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    @Test
    public void closedBuffer() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        NormalWorld world = NormalMisuses.world(4);
        LowLatencyWorld fast = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.normal(NormalMisuses.LIMITS).lowLatency(shape.limits()),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    LowLatencyRank fastRank = new LowLatencyRank(context, fast);
                    DispatchHandle handle = rank.dispatch(rank.request(), world.check()).handle();
                    LowLatencyHandle fastHandle = fastRank.dispatch(LowLatencyFormat.FP8).handle();
                    Buffer buffer = context.buffer();
                    buffer.close();
                    buffer.close();
                    requireClosed(() -> rank.roundTrip());
                    requireClosed(() -> rank.combine(handle, world.check()));
                    requireClosed(() -> buffer.getCombineBuffer(handle));
                    requireClosed(() -> buffer.getDispatchLayout(rank.topkIdx(), 16));
                    requireClosed(() -> fastRank.roundTrip(LowLatencyFormat.FP8));
                    requireClosed(() -> fastRank.combine(fastHandle));
                    requireClosed(() -> buffer.getNextLowLatencyCombineBuffer(fastHandle));
                    requireClosed(buffer::cleanLowLatencyBuffer);
                    requireClosed(buffer::lowLatencyQueryMask);
                    requireClosed(buffer::lowLatencyCleanMask);
                    int other = (context.rank() + 1) % context.communicator().size();
                    requireClosed(() -> buffer.lowLatencyUpdateMask(other, true));
                    requireClosed(buffer::communicationStream);
                    requireClosed(() -> buffer.getLocalBufferTensor(DType.BF16, 1, 0, false));
                });
    }

    private static void requireClosed(Runnable call) {
        assertThatThrownBy(call::run)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
    }
}
