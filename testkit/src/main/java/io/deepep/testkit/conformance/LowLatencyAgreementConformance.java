package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/**
 * Low-latency calls that do not fit together, on one rank or between ranks: every rank concerned
 * learns it, after which the buffer still works. Part of {@link BadInputConformance}.
 */
public abstract class LowLatencyAgreementConformance extends AgreementConformance {
    private static final LowLatencyShape SHAPE = LowLatencyMisuses.SHAPE;
    private static final LowLatencyFormat FP8 = LowLatencyFormat.FP8;

    private void run(Ranks.Body body) {
        Ranks.run(backend(), SHAPE.topology(), b -> b.lowLatency(SHAPE.limits()), body);
    }

    private static void requireOrder(ThrowingCallable call, String why) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(why);
    }

    /** A hook that has run, a third dispatch or combine before the first of them is received. */
    @Test
    public void halvesOutOfOrder() {
        LowLatencyWorld world = SHAPE.world(9);
        run(
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Buffer buffer = context.buffer();
                    LowLatencyDispatchRequest request = rank.request(FP8).receiveHook(true).build();
                    LowLatencyDispatchResult first = buffer.lowLatencyDispatch(request);
                    LowLatencyDispatchResult second = buffer.lowLatencyDispatch(request);
                    requireOrder(() -> buffer.lowLatencyDispatch(request), "receive hook");
                    requireOrder(() -> rank.dispatch(FP8), "receive hook");
                    first.receiveHook().run();
                    rank.verify(first, FP8);
                    second.receiveHook().run();
                    requireOrder(() -> second.receiveHook().run(), "nothing is left to receive");
                    rank.verify(second, FP8);
                    LowLatencyCombineRequest home =
                            rank.home(second.handle()).receiveHook(true).build();
                    LowLatencyCombineResult one = buffer.lowLatencyCombine(home);
                    LowLatencyCombineResult two = buffer.lowLatencyCombine(home);
                    requireOrder(() -> buffer.lowLatencyCombine(home), "receive hook");
                    requireOrder(() -> rank.combine(second.handle()), "receive hook");
                    one.receiveHook().run();
                    rank.verify(one);
                    two.receiveHook().run();
                    requireOrder(() -> two.receiveHook().run(), "nothing is left to receive");
                    rank.verify(two);
                    rank.roundTrip(FP8);
                });
    }

    @Test
    public void differentLowLatencyFormats() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyFormat format =
                            context.rank() == CULPRIT
                                    ? LowLatencyFormat.BF16
                                    : LowLatencyFormat.FP8;
                    requireMismatch(
                            () ->
                                    context.buffer()
                                            .lowLatencyDispatch(rank.request(format).build())
                                            .event()
                                            .synchronize(),
                            "BF16",
                            "FP8");
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /**
     * Low-latency calls exchange no headers, so ranks that make different ones may only learn that
     * the expected rows do not come; they must learn it in time.
     */
    @Test
    public void differentLowLatencyOperations() {
        LowLatencyShape shape = LowLatencyMisuses.SHAPE;
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.lowLatency(shape.limits()).timeout(Duration.ofMillis(500)),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
                    assertThatThrownBy(
                                    () -> {
                                        if (context.rank() == CULPRIT) {
                                            rank.combine(result.handle());
                                        } else {
                                            rank.dispatch(LowLatencyFormat.FP8);
                                        }
                                    })
                            .isInstanceOfAny(
                                    RankMismatchException.class, DeepEpTimeoutException.class)
                            .hasMessageContaining(
                                    context.rank() == CULPRIT ? "combine" : "dispatch");
                });
    }
}
