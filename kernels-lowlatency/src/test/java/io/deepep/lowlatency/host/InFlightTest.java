package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.spi.Operation;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Send and receive halves in every order that hooks allow, and the orders they do not. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class InFlightTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 8, 3);
    private static final int RANKS = 4;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    private static Group group() {
        return new Group(RANKS, LIMITS).timeout(Duration.ofSeconds(5));
    }

    /**
     * The later of two is received first. Some ranks do so and some do not, and the fast ones must
     * not overwrite what the slow ones have still to read.
     */
    @Test
    void dispatchesReceivedInAnyOrder() throws Exception {
        Batch a = Batch.random(LIMITS, RANKS, 3, 1);
        Batch b = Batch.random(LIMITS, RANKS, 3, 2);
        group().run(
                        rank -> {
                            var first = rank.dispatch(a, BF16);
                            var second = rank.dispatch(b, BF16);
                            for (int round = 0; round < 50; round++) {
                                first.begin();
                                LowLatencyDispatchResult gotA =
                                        first.result(Event.completed(), null);
                                second.begin();
                                LowLatencyDispatchResult gotB =
                                        second.result(Event.completed(), null);
                                boolean swap = (round + rank.rank()) % 3 != 0;
                                (swap ? second : first).complete();
                                (swap ? first : second).complete();
                                a.verifyDispatch(rank.rank(), gotA);
                                b.verifyDispatch(rank.rank(), gotB);
                            }
                        });
    }

    @Test
    void combinesReceivedInAnyOrder() throws Exception {
        Batch a = Batch.random(LIMITS, RANKS, 3, 3);
        Batch b = Batch.random(LIMITS, RANKS, 3, 4);
        group().run(
                        rank -> {
                            for (int round = 0; round < 50; round++) {
                                LowLatencyDispatchResult gotA = rank.dispatched(a, BF16);
                                LowLatencyDispatchResult gotB = rank.dispatched(b, BF16);
                                var homeA =
                                        rank.kernels()
                                                .prepareCombine(
                                                        rank.home(a, gotA.recvX(), gotA).build());
                                var homeB =
                                        rank.kernels()
                                                .prepareCombine(
                                                        rank.home(b, gotB.recvX(), gotB).build());
                                homeA.begin();
                                homeB.begin();
                                boolean swap = (round + rank.rank()) % 3 != 0;
                                (swap ? homeB : homeA).complete();
                                (swap ? homeA : homeB).complete();
                                a.verifyEcho(
                                        rank.rank(), homeA.result(Event.completed(), null).x());
                                b.verifyEcho(
                                        rank.rank(), homeB.result(Event.completed(), null).x());
                            }
                        });
    }

    /** The combine's receive half comes after its dispatch's memory has been used again. */
    @Test
    void combineReceivedAfterTheSecondNextDispatch() throws Exception {
        Batch a = Batch.random(LIMITS, RANKS, 3, 5);
        Batch b = Batch.random(LIMITS, RANKS, 3, 6);
        group().run(
                        rank -> {
                            LowLatencyDispatchResult got = rank.dispatched(a, BF16);
                            var home =
                                    rank.kernels()
                                            .prepareCombine(rank.home(a, got.recvX(), got).build());
                            home.begin();
                            rank.dispatched(b, BF16);
                            rank.dispatched(b, BF16);
                            home.complete();
                            a.verifyEcho(rank.rank(), home.result(Event.completed(), null).x());
                        });
    }

    @Test
    void halvesThatDoNotFitAreRefused() throws Exception {
        Batch batch = Batch.random(LIMITS, RANKS, 3, 7);
        group().run(
                        rank -> {
                            Operation<LowLatencyDispatchResult> dispatch =
                                    rank.dispatch(batch, BF16);
                            refused(dispatch::complete, "nothing is left to receive");
                            dispatch.begin();
                            dispatch.begin();
                            refused(dispatch::begin, "run its receive hook before");
                            dispatch.complete();
                            dispatch.complete();
                            refused(dispatch::complete, "nothing is left to receive");
                            var result = dispatch.result(Event.completed(), null);
                            batch.verifyDispatch(rank.rank(), result);
                            var combine =
                                    rank.kernels()
                                            .prepareCombine(
                                                    rank.home(batch, result.recvX(), result)
                                                            .build());
                            combine.begin();
                            combine.begin();
                            refused(combine::begin, "run its receive hook");
                            combine.complete();
                            combine.complete();
                            refused(combine::complete, "nothing is left to receive");
                            rank.roundTrip(batch);
                        });
    }

    private static void refused(Runnable call, String why) {
        assertThatThrownBy(call::run)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(why);
    }

    /** What was in flight at a clean is gone, and the same operations work again afterwards. */
    @Test
    void cleanForgetsWhatIsInFlight() throws Exception {
        Batch batch = Batch.random(LIMITS, RANKS, 3, 8);
        group().run(
                        rank -> {
                            Operation<LowLatencyDispatchResult> dispatch =
                                    rank.dispatch(batch, BF16);
                            for (int round = 0; round < 5; round++) {
                                for (int i = 0; i < round; i++) {
                                    rank.roundTrip(batch);
                                }
                                LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
                                var combine =
                                        rank.kernels()
                                                .prepareCombine(
                                                        rank.home(batch, got.recvX(), got).build());
                                combine.begin();
                                dispatch.begin();
                                rank.clean();
                                refused(combine::complete, "nothing is left to receive");
                                dispatch.begin();
                                dispatch.complete();
                                batch.verifyDispatch(
                                        rank.rank(), dispatch.result(Event.completed(), null));
                            }
                        });
    }
}
