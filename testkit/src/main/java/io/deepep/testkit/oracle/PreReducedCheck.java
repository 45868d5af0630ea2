package io.deepep.testkit.oracle;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
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
    /**
     * Compares: LogFMT within its bounds, the others bit for bit.
     *
     * @param src the rank whose tokens were combined
     * @param format what the sums travelled as
     * @param actual BF16 [T,H] on the host
     */
    public void check(int src, CombineFormat format, Tensor actual) {
        long numTokens = oracle.routing().numTokens(src);
        long hidden = outputs.getFirst().size(2);
        RowBits.requireShape(actual, "combined x", DType.BF16, numTokens, hidden);
        switch (format) {
            case LOGFMT -> checkLogFmt(src, actual);
            case BF16, FP8 -> checkBits(src, format, actual);
        }
    }

    private void checkBits(int src, CombineFormat format, Tensor actual) {
        int hidden = (int) actual.size(1);
        FloatRow sum = new FloatRow(hidden);
        FloatRow partial = new FloatRow(hidden);
        for (int token = 0; token < actual.size(0); token++) {
            sum.clear();
            for (int rank : ranks(src, token)) {
                partial.clear();
                oracle.forRows(src, token, from -> from == rank, outputs, partial::add);
                sum.addTravelled(partial.rounded(), format, 1);
            }
            sum.requireSame(actual, token, what(src, token));
        }
    }

    private void checkLogFmt(int src, Tensor actual) {
        int hidden = (int) actual.size(1);
        ExactRow sum = new ExactRow(hidden);
        ExactRow partial = new ExactRow(hidden);
        for (int token = 0; token < actual.size(0); token++) {
            sum.clear();
            for (int rank : ranks(src, token)) {
                partial.clear();
                oracle.forRows(src, token, from -> from == rank, outputs, partial::add);
                partial.allowRounding();
                sum.add(partial);
            }
            sum.allowLogFmt();
            sum.allowRounding();
            sum.requireNear(actual, token, what(src, token));
        }
    }

    private static String what(int src, int token) {
        return "pre-reduced low-latency combine: rank " + src + ", token " + token;
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
}
