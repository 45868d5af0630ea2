package io.deepep.testkit.oracle;

import io.deepep.Bf16;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Compares a pre-reduced low-latency combine with its definition: each rank's weighted sum in fp32,
 * in the order of selections, rounded to BF16; then the sum of these in fp32, in the order of each
 * rank's first selection, rounded again.
 *
 * @param oracle of the routing
 * @param outputs for each rank what its experts computed, BF16 [El, R*maxTokens, H] on the host
 */
public record PreReducedCheck(LowLatencyOracle oracle, List<Tensor> outputs) {
    /** Takes a row of an expert's outputs. */
    @FunctionalInterface
    private interface Rows {
        void add(Tensor rows, long row, double weight);
    }

    /**
     * Compares bit for bit.
     *
     * @param src the rank whose tokens were combined
     * @param actual BF16 [T,H] on the host
     */
    public void check(int src, Tensor actual) {
        requireShape(src, actual);
        int hidden = (int) actual.size(1);
        float[] sum = new float[hidden];
        float[] partial = new float[hidden];
        for (int token = 0; token < actual.size(0); token++) {
            Arrays.fill(sum, 0);
            for (int rank : ranks(src, token)) {
                Arrays.fill(partial, 0);
                forRows(src, token, rank, (rows, row, weight) -> add(partial, rows, row, weight));
                for (int h = 0; h < hidden; h++) {
                    sum[h] += Bf16.toFloat(Bf16.fromFloat(partial[h]));
                }
            }
            for (int h = 0; h < hidden; h++) {
                long expected = Bf16.fromFloat(sum[h]) & 0xffffL;
                long seen = actual.getLong(token, h) & 0xffffL;
                if (expected != seen) {
                    throw new OracleMismatch(
                            "%s, channel %s: expected bits 0x%s, saw 0x%s"
                                    .formatted(
                                            what(src, token),
                                            h,
                                            Long.toHexString(expected),
                                            Long.toHexString(seen)));
                }
            }
        }
    }

    /**
     * Compares sums that travelled as LogFMT.
     *
     * @param relative what a number may be off by that, relative to its summands' magnitudes
     * @param absolute what it may be off besides
     */
    public void checkLogFmt(int src, double relative, double absolute, Tensor actual) {
        requireShape(src, actual);
        int hidden = (int) actual.size(1);
        ExactRow sum = new ExactRow(hidden);
        ExactRow partial = new ExactRow(hidden);
        for (int token = 0; token < actual.size(0); token++) {
            sum.clear();
            for (int rank : ranks(src, token)) {
                partial.clear();
                forRows(src, token, rank, partial::add);
                partial.allowRounding();
                sum.add(partial);
            }
            sum.allowRelative(relative);
            sum.allowAbsolute(absolute);
            sum.allowRounding();
            sum.requireNear(actual, token, what(src, token));
        }
    }

    private static String what(int src, int token) {
        return "pre-reduced low-latency combine: rank " + src + ", token " + token;
    }

    private void requireShape(int src, Tensor actual) {
        long numTokens = oracle.routing().numTokens(src);
        RowBits.requireShape(actual, "combined x", DType.BF16, numTokens, actual.size(1));
    }

    /** The ranks that return something for a token, in the order of their first selections. */
    private int[] ranks(int src, int token) {
        Routing routing = oracle.routing();
        return IntStream.range(0, routing.numTopk())
                .filter(k -> oracle.rowOf(src, token, k) >= 0)
                .map(k -> routing.ownerOf(routing.expert(src, token, k)))
                .distinct()
                .toArray();
    }

    /** The rows of a token's selections at {@code rank}, in their order. */
    private void forRows(int src, int token, int rank, Rows rows) {
        Routing routing = oracle.routing();
        for (int k = 0; k < routing.numTopk(); k++) {
            long expert = routing.expert(src, token, k);
            int row = oracle.rowOf(src, token, k);
            if (row >= 0 && routing.ownerOf(expert) == rank) {
                Tensor output = outputs.get(rank).select(0, routing.localExpert(expert, rank));
                rows.add(output, row, routing.weight(src, token, k));
            }
        }
    }

    private static void add(float[] sum, Tensor rows, long row, double weight) {
        MemorySegment memory = rows.segment();
        long at = rows.offsetBytes(row, 0);
        for (int h = 0; h < sum.length; h++) {
            short bits = memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 2L * h);
            sum[h] += (float) weight * Bf16.toFloat(bits);
        }
    }
}
