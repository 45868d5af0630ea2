package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.deepep.Bf16;
import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.lowlatency.DispatchFlagWord;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Many dispatches and combines one after the other, in all formats. */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class ChainTest {
    @ParameterizedTest
    @CsvSource({
        "1, 4, 3, 2, 300",
        "2, 6, 3, 8, 300",
        "3, 6, 5, 4, 200",
        "8, 16, 2, 4, 150",
        "64, 64, 2, 3, 6"
    })
    void chainedPairsOfRandomRouting(
            int numRanks, int numExperts, int maxTokens, int numTopk, int rounds) throws Exception {
        var limits = new LowLatencyLimits(maxTokens, 128, numTopk, numExperts);
        List<Batch> batches = new ArrayList<>();
        for (int i = 0; i < 13; i++) {
            batches.add(Batch.random(limits, numRanks, 1 + i % numTopk, i));
        }
        new Group(numRanks, limits)
                .run(
                        rank -> {
                            for (int i = 0; i < rounds; i++) {
                                rank.roundTrip(batches.get(i % batches.size()));
                            }
                        });
    }

    /** A selection has no bits for more. */
    @Test
    void tooManyLocalExpertsAreRefused() {
        var limits = new LowLatencyLimits(1, 128, 1, DispatchFlagWord.MAX_LOCAL_EXPERTS + 1);
        assertThatThrownBy(() -> new Group(1, limits).run(_ -> {}))
                .hasRootCauseInstanceOf(IllegalArgumentException.class)
                .hasRootCauseMessage(
                        "numExperts=131073 is more than 131072 on each of 1 ranks; use fewer experts or"
                                + " more ranks");
    }

    /** Thousands of the same two operations, as an engine runs its layers. */
    @Test
    void thousandsOfRunsOfReusedOperations() throws Exception {
        var limits = new LowLatencyLimits(2, 128, 2, 4);
        Batch a = Batch.random(limits, 2, 2, 1);
        Batch b = Batch.cyclic(limits, 2, 2, 2);
        new Group(2, limits)
                .run(
                        rank -> {
                            var first = rank.dispatch(a, LowLatencyFormat.BF16);
                            var second = rank.dispatch(b, LowLatencyFormat.BF16);
                            for (int i = 0; i < 4000; i++) {
                                first.begin();
                                second.begin();
                                first.complete();
                                second.complete();
                                if (i % 100 == 0) {
                                    a.verifyDispatch(
                                            rank.rank(),
                                            LowLatencyFormat.BF16,
                                            first.result(Event.completed(), null));
                                    b.verifyDispatch(
                                            rank.rank(),
                                            LowLatencyFormat.BF16,
                                            second.result(Event.completed(), null));
                                }
                            }
                        });
    }

    @Test
    void resultsAreReused() throws Exception {
        var limits = new LowLatencyLimits(2, 128, 2, 4);
        Batch batch = Batch.cyclic(limits, 2, 2, 2);
        new Group(2, limits)
                .run(
                        rank -> {
                            var dispatch = rank.dispatch(batch, LowLatencyFormat.BF16);
                            List<LowLatencyDispatchResult> seen = new ArrayList<>();
                            for (int i = 0; i < 6; i++) {
                                var result = Group.Rank.run(dispatch);
                                seen.add(result);
                                if (i < 3) {
                                    rank.combined(rank.home(batch, result.recvX(), result));
                                }
                            }
                            assertThat(seen.get(2)).isSameAs(seen.get(0));
                            assertThat(seen.get(3)).isSameAs(seen.get(1));
                            assertThat(seen.get(1)).isNotSameAs(seen.get(0));
                            // What was not combined may still be expected.
                            assertThat(seen.get(4)).isSameAs(seen.get(0));
                            assertThat(seen.get(5)).isNotSameAs(seen.get(1));
                        });
    }

    /**
     * Once warm, both halves of both operations leave no garbage. The bound leaves room for what
     * the JVM itself may allocate on the thread, not for one object in each run.
     */
    @ParameterizedTest
    @CsvSource({"BF16, BF16", "FP8, LOGFMT", "FP8_POWER_OF_TWO, BF16", "FP8_UE8M0, FP8"})
    void runsAllocateNothing(LowLatencyFormat format, CombineFormat home) throws Exception {
        var limits = new LowLatencyLimits(2, 128, 2, 4);
        Batch batch = Batch.cyclic(limits, 2, 2, 2);
        var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        new Group(2, limits)
                .run(
                        rank -> {
                            var dispatch = rank.dispatch(batch, format);
                            Tensor outputs = Tensor.allocate(Arena.ofAuto(), DType.BF16, 2, 4, 128);
                            for (int i = 0; i < 8 * 128; i++) {
                                outputs.segment()
                                        .setAtIndex(
                                                ValueLayout.JAVA_SHORT, i, (short) (0x3f80 + i));
                            }
                            List<Operation<?>> combines = new ArrayList<>();
                            for (int i = 0; i < 2; i++) {
                                var received = Group.Rank.run(dispatch);
                                combines.add(
                                        rank.kernels()
                                                .prepareCombine(
                                                        rank.home(batch, outputs, received)
                                                                .format(home)
                                                                .build()));
                                Group.Rank.run(combines.get(i));
                            }
                            long before = 0;
                            int warm = 30_000;
                            int measured = 4_000;
                            for (int i = 0; i < warm + measured; i++) {
                                if (i == warm) {
                                    before = threads.getCurrentThreadAllocatedBytes();
                                }
                                Group.Rank.run(dispatch);
                                Group.Rank.run(combines.get(i % 2));
                            }
                            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
                            assertThat(allocated).isLessThan(8L * measured);
                        });
    }

    /** Hidden sizes whose scale groups do and do not fill packed integers. */
    @ParameterizedTest
    @EnumSource(
            value = LowLatencyFormat.class,
            names = {"FP8", "FP8_POWER_OF_TWO", "FP8_UE8M0"})
    void fp8RowsAndTheirScales(LowLatencyFormat format) throws Exception {
        for (int hidden : new int[] {128, 384, 512, 640}) {
            var limits = new LowLatencyLimits(5, hidden, 2, 4);
            Batch batch = Batch.cyclic(limits, 2, 5, 2);
            new Group(2, limits)
                    .run(
                            rank -> {
                                // Twice each parity: stale scales must not survive.
                                for (int i = 0; i < 4; i++) {
                                    batch.verifyDispatch(
                                            rank.rank(), format, rank.dispatched(batch, format));
                                }
                            });
        }
    }

    /** The same routing home as LogFMT: half a code step off for each selection at most. */
    @Test
    void logFmtComesHomeWithinItsBound() throws Exception {
        var limits = new LowLatencyLimits(4, 256, 3, 4);
        Batch batch = Batch.cyclic(limits, 2, 4, 3);
        new Group(2, limits)
                .run(
                        rank -> {
                            LowLatencyDispatchResult got =
                                    rank.dispatched(batch, LowLatencyFormat.BF16);
                            Tensor home =
                                    rank.combined(
                                            rank.home(batch, got.recvX(), got)
                                                    .format(CombineFormat.LOGFMT));
                            Tensor x = batch.x(rank.rank());
                            Tensor weights = batch.weights(rank.rank());
                            for (int token = 0; token < 4; token++) {
                                float weight = 0;
                                for (int k = 0; k < 3; k++) {
                                    weight += weights.getFloat(token, k);
                                }
                                for (int c = 0; c < 256; c++) {
                                    double exact = weight * x.getFloat(token, c);
                                    // 2.2 % of LogFMT and 2^-8 of BF16.
                                    assertThat(Math.abs(home.getFloat(token, c) - exact))
                                            .isLessThanOrEqualTo(0.0265 * Math.abs(exact));
                                }
                            }
                        });
    }

    @Test
    void countsAreAddedAndOutIsUsed() throws Exception {
        var limits = new LowLatencyLimits(4, 128, 2, 4);
        Batch batch = Batch.cyclic(limits, 2, 4, 2);
        new Group(2, limits)
                .run(
                        rank -> {
                            int me = rank.rank();
                            Tensor stats = Tensor.allocate(Arena.ofAuto(), DType.I32, 2);
                            stats.setLong(1000, 1);
                            Tensor out = Tensor.allocate(Arena.ofAuto(), DType.BF16, 4, 128);
                            var dispatch =
                                    rank.kernels()
                                            .prepareDispatch(
                                                    LowLatencyDispatchPlan.builder(
                                                                    batch.x(me), batch.topkIdx(me))
                                                            .format(LowLatencyFormat.BF16)
                                                            .cumulativeStats(stats)
                                                            .build());
                            for (int round = 1; round <= 3; round++) {
                                var got = Group.Rank.run(dispatch);
                                batch.verifyDispatch(me, LowLatencyFormat.BF16, got);
                                for (int expert = 0; expert < 2; expert++) {
                                    assertThat(stats.getLong(expert))
                                            .isEqualTo(
                                                    1000L * expert
                                                            + round
                                                                    * got.recvCount()
                                                                            .getLong(expert));
                                }
                                Tensor home =
                                        rank.combined(rank.home(batch, got.recvX(), got).out(out));
                                assertThat(home).isSameAs(out);
                                batch.verifyEcho(me, home);
                                out.segment().fill((byte) Bf16.fromFloat(1f));
                            }
                        });
    }
}
