package io.deepep.testkit.oracle;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Compares a low-latency combine with its definition: the weighted sum of a token's rows in fp32,
 * in the order of selections, rounded to BF16. If it is pre-reduced, each rank's sum is rounded
 * before it travels, and these are summed in fp32, in the order of each rank's first selection.
 *
 * @param oracle of the routing
 * @param outputs for each rank what its experts computed, BF16 [El, R*maxTokens, H] on the host
 * @param format what rows or sums travelled as
 * @param preReduced whether each rank's sums travelled
 */
public record LowLatencyCombineCheck(
        LowLatencyOracle oracle, List<Tensor> outputs, CombineFormat format, boolean preReduced) {
    /**
     * Compares: FP8, and BF16 if it is pre-reduced, bit for bit; the others within their bounds.
     *
     * @param src the rank whose tokens were combined
     * @param actual BF16 [T,H] on the host
     */
    public void check(int src, Tensor actual) {
        int numTokens = oracle.routing().numTokens(src);
        RowBits.requireShape(actual, "combined x", DType.BF16, numTokens, hidden());
        String combine = preReduced ? "pre-reduced low-latency combine" : "low-latency combine";
        for (int token = 0; token < numTokens; token++) {
            String what = combine + ": rank " + src + ", token " + token;
            if (format == CombineFormat.FP8 || (preReduced && format == CombineFormat.BF16)) {
                floatSum(src, token).requireSame(actual, token, what);
            } else {
                exactSum(src, token).requireNear(actual, token, what);
            }
        }
    }

    private int hidden() {
        return (int) outputs.getFirst().size(2);
    }

    private FloatRow floatSum(int src, int token) {
        FloatRow sum = new FloatRow(hidden());
        if (!preReduced) {
            oracle.forRows(
                    src,
                    token,
                    _ -> true,
                    outputs,
                    (rows, row, weight) ->
                            sum.addTravelled(rows.getFloats(row), format, (float) weight));
            return sum;
        }
        for (int rank : ranks(src, token)) {
            FloatRow partial = new FloatRow(hidden());
            oracle.forRows(src, token, from -> from == rank, outputs, partial::add);
            sum.addTravelled(partial.rounded(), format, 1);
        }
        return sum;
    }

    private ExactRow exactSum(int src, int token) {
        ExactRow sum = new ExactRow(hidden());
        if (preReduced) {
            for (int rank : ranks(src, token)) {
                ExactRow partial = new ExactRow(hidden());
                oracle.forRows(src, token, from -> from == rank, outputs, partial::add);
                partial.allowRounding();
                sum.add(partial);
            }
        } else {
            oracle.forRows(src, token, _ -> true, outputs, sum::add);
        }
        if (format == CombineFormat.LOGFMT) {
            sum.allowLogFmt();
        }
        sum.allowRounding();
        return sum;
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
