package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Errors that every rank must learn, and after which the next call works. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class AgreementTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 8, 3);
    private static final int RANKS = 4;
    private static final int OFFENDER = 2;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    private static Group group() {
        return new Group(RANKS, LIMITS).timeout(Duration.ofSeconds(20));
    }

    @ParameterizedTest
    @ValueSource(longs = {8, -2, 999, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32})
    void anIndexOutOfRangeReachesAllRanksFromTheReceiveHalf(long index) throws Exception {
        Batch good = Batch.random(LIMITS, RANKS, 3, 1);
        Batch bad =
                new Batch(
                        LIMITS,
                        new int[] {6, 6, 6, 6},
                        3,
                        2,
                        (random, rank, token, k) ->
                                rank == OFFENDER && token == 3 && k == 1 ? index : token % 8);
        group().run(
                        rank -> {
                            for (int round = 0; round < 3; round++) {
                                Operation<LowLatencyDispatchResult> dispatch =
                                        rank.dispatch(bad, BF16);
                                dispatch.begin();
                                assertThatThrownBy(dispatch::complete)
                                        .isInstanceOf(RoutingException.class)
                                        .hasMessageContaining("topkIdx[3][1]=" + index)
                                        .hasMessageContaining("numExperts=8")
                                        .extracting(e -> ((RoutingException) e).rank())
                                        .isEqualTo(OFFENDER);
                                rank.roundTrip(good);
                            }
                        });
    }

    /**
     * An expert has R * maxTokens rows, enough unless tokens name it twice: 24 selections fit, from
     * however few ranks, and one more is refused by all instead of spilling over.
     */
    @Test
    void anExpertSelectedMoreOftenThanItHasRows() throws Exception {
        Batch full =
                new Batch(
                        LIMITS,
                        new int[] {6, 6, 0, 0},
                        3,
                        4,
                        (random, rank, token, k) -> k < 2 ? 5 : token % 5);
        Batch spills =
                new Batch(
                        LIMITS,
                        new int[] {6, 6, 1, 0},
                        3,
                        5,
                        (random, rank, token, k) -> k < 2 && (rank < 2 || k == 0) ? 5 : token % 5);
        group().run(
                        rank -> {
                            rank.roundTrip(full);
                            Operation<LowLatencyDispatchResult> dispatch =
                                    rank.dispatch(spills, BF16);
                            dispatch.begin();
                            assertThatThrownBy(dispatch::complete)
                                    .isInstanceOf(CapacityExceededException.class)
                                    .hasMessageContaining("would receive 25 tokens")
                                    .hasMessageContaining("room for 24")
                                    .hasMessageContaining("expert 5")
                                    .extracting(e -> ((CapacityExceededException) e).rank())
                                    .isEqualTo(2);
                            rank.roundTrip(full);
                        });
    }

    @Test
    void differentFormats() throws Exception {
        Batch batch = Batch.random(LIMITS, RANKS, 3, 6);
        group().run(
                        rank -> {
                            for (LowLatencyFormat other : LowLatencyFormat.values()) {
                                if (other == BF16) {
                                    continue;
                                }
                                var dispatch =
                                        rank.dispatch(
                                                batch, rank.rank() == OFFENDER ? other : BF16);
                                dispatch.begin();
                                assertThatThrownBy(dispatch::complete)
                                        .isInstanceOf(RankMismatchException.class)
                                        .hasMessageContaining(other.name())
                                        .hasMessageContaining("BF16");
                                rank.roundTrip(batch);
                            }
                        });
    }

    @Test
    void differentNumbersOfSelections() throws Exception {
        Batch three = Batch.random(LIMITS, RANKS, 3, 7);
        Batch two = Batch.random(LIMITS, RANKS, 2, 8);
        group().run(
                        rank -> {
                            var dispatch =
                                    rank.dispatch(rank.rank() == OFFENDER ? two : three, BF16);
                            dispatch.begin();
                            assertThatThrownBy(dispatch::complete)
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageContaining("numTopk");
                            rank.roundTrip(two);
                            rank.roundTrip(three);
                        });
    }

    @Test
    void combineFormatsThatDiffer() throws Exception {
        Batch batch = Batch.random(LIMITS, RANKS, 3, 9);
        group().run(
                        rank -> {
                            LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
                            var home = rank.home(batch, got.recvX(), got);
                            var combine =
                                    rank.kernels()
                                            .prepareCombine(
                                                    home.logFmt(rank.rank() == OFFENDER).build());
                            combine.begin();
                            assertThatThrownBy(combine::complete)
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageContaining("LogFMT")
                                    .hasMessageContaining("BF16");
                            batch.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(batch, got.recvX(), got)));
                        });
    }

    @Test
    void combinesOfDifferentDispatches() throws Exception {
        Batch a = Batch.random(LIMITS, RANKS, 3, 10);
        Batch b = Batch.random(LIMITS, RANKS, 3, 11);
        group().run(
                        rank -> {
                            LowLatencyDispatchResult gotA = rank.dispatched(a, BF16);
                            LowLatencyDispatchResult gotB = rank.dispatched(b, BF16);
                            boolean wrong = rank.rank() == OFFENDER;
                            var home =
                                    wrong
                                            ? rank.home(a, gotA.recvX(), gotA)
                                            : rank.home(b, gotB.recvX(), gotB);
                            var combine = rank.kernels().prepareCombine(home.build());
                            combine.begin();
                            assertThatThrownBy(combine::complete)
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageContaining("dispatch");
                            a.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(a, gotA.recvX(), gotA)));
                            b.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(b, gotB.recvX(), gotB)));
                        });
    }

    @Test
    void handlesThatHaveEnded() throws Exception {
        Batch batch = Batch.random(LIMITS, RANKS, 3, 12);
        group().run(
                        rank -> {
                            LowLatencyDispatchResult old = rank.dispatched(batch, BF16);
                            var prepared =
                                    rank.kernels()
                                            .prepareCombine(
                                                    rank.home(batch, old.recvX(), old).build());
                            rank.dispatched(batch, BF16);
                            rank.dispatched(batch, BF16);
                            assertThatThrownBy(prepared::begin)
                                    .isInstanceOf(IllegalArgumentException.class)
                                    .hasMessageContaining("of dispatch 1")
                                    .hasMessageContaining("dispatch 3");
                            assertThatThrownBy(() -> rank.kernels().combineBuffer(old.handle()))
                                    .isInstanceOf(IllegalArgumentException.class);
                            LowLatencyDispatchResult last = rank.dispatched(batch, BF16);
                            rank.clean();
                            assertThatThrownBy(() -> rank.kernels().combineBuffer(last.handle()))
                                    .isInstanceOf(IllegalArgumentException.class)
                                    .hasMessageContaining("cleanLowLatencyBuffer");
                            rank.roundTrip(batch);
                        });
    }

    @Test
    void zeroCopyWantsTheBuffersOwnTensor() throws Exception {
        Batch batch = Batch.cyclic(LIMITS, RANKS, 6, 3);
        group().run(
                        rank -> {
                            LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
                            Tensor own = rank.kernels().combineBuffer(got.handle());
                            own.segment().copyFrom(got.recvX().segment());
                            assertThat(own.shape()).containsExactly(2, 24, 128);
                            Tensor twisted =
                                    Tensor.strided(
                                            own.segment(),
                                            DType.BF16,
                                            own.shape(),
                                            new long[] {128, 256, 1});
                            for (Tensor other : new Tensor[] {got.recvX(), twisted}) {
                                var request = rank.home(batch, other, got).zeroCopy(true).build();
                                assertThat(
                                                catchThrowable(
                                                        () ->
                                                                rank.kernels()
                                                                        .prepareCombine(request)))
                                        .isInstanceOf(IllegalArgumentException.class)
                                        .hasMessageContaining("zeroCopy");
                            }
                            batch.verifyEcho(
                                    rank.rank(),
                                    rank.combined(rank.home(batch, own, got).zeroCopy(true)));
                            Tensor gaps =
                                    Tensor.strided(
                                            Arena.ofAuto().allocate(2 * 24 * 2 * 130L * 2),
                                            DType.BF16,
                                            new long[] {2, 24, 128},
                                            new long[] {130, 260, 1});
                            copy(own, gaps);
                            batch.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(batch, gaps, got)));
                        });
    }

    private static void copy(Tensor from, Tensor to) {
        for (long e = 0; e < from.size(0); e++) {
            for (long row = 0; row < from.size(1); row++) {
                for (long c = 0; c < from.size(2); c++) {
                    to.setLong(from.getLong(e, row, c), e, row, c);
                }
            }
        }
    }
}
