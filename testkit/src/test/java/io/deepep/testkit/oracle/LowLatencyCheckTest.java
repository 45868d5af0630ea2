package io.deepep.testkit.oracle;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.Tokens;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The checks of low-latency mode: they accept what rank 0 gets in the routing worked out by hand,
 * and notice each element of it that is wrong.
 */
class LowLatencyCheckTest {
    private static final int HIDDEN = 640;
    private static final int GROUPS = HIDDEN / 128;
    private static final int MAX_TOKENS = 3;
    private static final int ROWS = 2 * MAX_TOKENS;

    /** Rank and token of each row of the experts 0 and 1. */
    private static final int[][][] SOURCES = {{{0, 0}, {0, 2}}, {{0, 0}, {1, 0}, {1, 0}}};

    private final LowLatencyOracle oracle = new LowLatencyOracle(HandMadeRouting.ROUTING);
    private final List<Tokens> tokens =
            List.of(Tokens.bf16(0, MAX_TOKENS, HIDDEN, 1), Tokens.bf16(1, MAX_TOKENS, HIDDEN, 1));

    private record Handle(Tensor srcInfo, Tensor layoutRange, int numTokens, int numTopk)
            implements LowLatencyHandle {}

    private static void requireMismatch(String what, ThrowingCallable check) {
        assertThatThrownBy(check).as(what).isInstanceOf(OracleMismatch.class);
    }

    private static void flip(Tensor tensor, long... at) {
        tensor.setLong(tensor.getLong(at) ^ 1, at);
    }

    private static Tensor columnMajor(DType dtype, int columns) {
        Tensor memory = HostTensors.allocate(dtype, 2, columns, ROWS);
        return HostTensors.view(
                memory, new long[] {2, ROWS, columns}, new long[] {(long) columns * ROWS, 1, ROWS});
    }

    /** The right result of rank 0. */
    private LowLatencyDispatchResult received(LowLatencyFormat format) {
        Tensor x =
                HostTensors.allocate(format.isFp8() ? DType.FP8_E4M3 : DType.BF16, 2, ROWS, HIDDEN);
        Tensor scales =
                switch (format) {
                    case BF16 -> null;
                    case FP8, FP8_POWER_OF_TWO -> columnMajor(DType.F32, GROUPS);
                    case FP8_UE8M0 -> columnMajor(DType.I32, (GROUPS + 3) / 4);
                };
        Tensor srcInfo = HostTensors.allocate(DType.I32, 2, ROWS);
        Tensor count = HostTensors.allocate(DType.I32, 2);
        for (int expert = 0; expert < 2; expert++) {
            count.setLong(SOURCES[expert].length, expert);
            for (int row = 0; row < SOURCES[expert].length; row++) {
                int token = SOURCES[expert][row][1];
                Tensor sent = tokens.get(SOURCES[expert][row][0]).x();
                srcInfo.setLong(token, expert, row);
                if (!format.isFp8()) {
                    HostTensors.copy(sent.select(0, token), x.select(0, expert).select(0, row));
                    continue;
                }
                Fp8Cast cast = Fp8Cast.of(sent, token, format);
                for (int h = 0; h < HIDDEN; h++) {
                    x.setLong(cast.codes()[h], expert, row, h);
                }
                for (int i = 0; i < scales.size(2); i++) {
                    long bits =
                            format == LowLatencyFormat.FP8_UE8M0
                                    ? cast.packedScales()[i]
                                    : Float.floatToRawIntBits(cast.scales()[i]);
                    scales.setLong(bits, expert, row, i);
                }
            }
        }
        Tensor range = HostTensors.i64(new long[][] {{2, 2L << 32}, {1, 1L << 32 | 2}}, 2);
        return new LowLatencyDispatchResult(
                x, scales, count, new Handle(srcInfo, range, 3, 2), Event.completed(), null);
    }

    @ParameterizedTest
    @EnumSource(LowLatencyFormat.class)
    void dispatch(LowLatencyFormat format) {
        LowLatencyCheck check = new LowLatencyCheck(oracle, tokens, format, MAX_TOKENS);
        LowLatencyDispatchResult right = received(format);
        check.checkDispatch(0, right, UnaryOperator.identity());
        for (int expert = 0; expert < 2; expert++) {
            requireNoticed(check, right, right.recvCount(), expert);
            for (int row = 0; row < SOURCES[expert].length; row++) {
                requireNoticed(check, right, right.handle().srcInfo(), expert, row);
                requireNoticed(check, right, right.recvX(), expert, row, 0);
                requireNoticed(check, right, right.recvX(), expert, row, HIDDEN - 1);
                for (int i = 0; format.isFp8() && i < right.recvScales().size(2); i++) {
                    requireNoticed(check, right, right.recvScales(), expert, row, i);
                }
            }
            for (int source = 0; source < 2; source++) {
                requireNoticed(check, right, right.handle().layoutRange(), expert, source);
            }
        }
        right.handle().layoutRange().setLong(2, 1, 1);
        requireMismatch(
                "begin of a range", () -> check.checkDispatch(0, right, UnaryOperator.identity()));
    }

    private static void requireNoticed(
            LowLatencyCheck check, LowLatencyDispatchResult result, Tensor part, long... at) {
        flip(part, at);
        requireMismatch(
                part + " at " + Arrays.toString(at),
                () -> check.checkDispatch(0, result, UnaryOperator.identity()));
        flip(part, at);
    }

    /** Other types, shapes and strides are noticed though the elements are right. */
    @ParameterizedTest
    @EnumSource(LowLatencyFormat.class)
    void forms(LowLatencyFormat format) {
        LowLatencyDispatchResult right = received(format);
        Tensor wide = HostTensors.allocate(right.recvX().dtype(), 2, ROWS + 1, HIDDEN);
        Tensor scales =
                format.isFp8()
                        ? HostTensors.copyOf(right.recvScales())
                        : columnMajor(DType.F32, GROUPS);
        LowLatencyCheck check = new LowLatencyCheck(oracle, tokens, format, MAX_TOKENS);
        for (LowLatencyDispatchResult wrong :
                List.of(
                        new LowLatencyDispatchResult(
                                wide,
                                right.recvScales(),
                                right.recvCount(),
                                right.handle(),
                                right.event(),
                                null),
                        new LowLatencyDispatchResult(
                                right.recvX(),
                                scales,
                                right.recvCount(),
                                right.handle(),
                                right.event(),
                                null))) {
            requireMismatch("form", () -> check.checkDispatch(0, wrong, UnaryOperator.identity()));
        }
    }

    /** Every row of an expert is the same, of which each format's cast gives the number back. */
    private static Tensor outputs(float ofFirstExpert, float ofSecondExpert) {
        Tensor outputs = HostTensors.allocate(DType.BF16, 2, ROWS, HIDDEN);
        float[] values = {ofFirstExpert, ofSecondExpert};
        for (int expert = 0; expert < 2; expert++) {
            for (int row = 0; row < ROWS; row++) {
                for (int h = 0; h < HIDDEN; h++) {
                    outputs.setFloat(values[expert], expert, row, h);
                }
            }
        }
        return outputs;
    }

    @ParameterizedTest
    @EnumSource(CombineFormat.class)
    void combine(CombineFormat format) {
        List<Tensor> outputs = List.of(outputs(2, 16), outputs(32, 64));
        // Token 0: experts 0 and 1. Token 1: expert 2. Token 2: experts 3 and 0.
        float[] sums = {.5f * 2 + .25f * 16, 32, .75f * 64 + .125f * 2};
        for (boolean preReduced : new boolean[] {false, true}) {
            requireNothingElse(
                    sums, new LowLatencyCombineCheck(oracle, outputs, format, preReduced));
        }
    }

    /** These sums are right for rank 0, and no others. */
    private static void requireNothingElse(float[] sums, LowLatencyCombineCheck comparison) {
        Tensor actual = HostTensors.allocate(DType.BF16, sums.length, HIDDEN);
        for (int token = 0; token < sums.length; token++) {
            for (int h = 0; h < HIDDEN; h++) {
                actual.setFloat(sums[token], token, h);
            }
        }
        comparison.check(0, actual);
        long step =
                comparison.format() == CombineFormat.LOGFMT ? 8 : 2; // of BF16, more than any bound
        for (int token = 0; token < sums.length; token++) {
            for (int h : new int[] {0, 127, 128, HIDDEN - 1}) {
                long right = actual.getLong(token, h);
                for (long wrong : new long[] {right - step, right + step}) {
                    actual.setLong(wrong, token, h);
                    requireMismatch(
                            "token %s, channel %s".formatted(token, h),
                            () -> comparison.check(0, actual));
                }
                actual.setLong(right, token, h);
            }
        }
    }
}
