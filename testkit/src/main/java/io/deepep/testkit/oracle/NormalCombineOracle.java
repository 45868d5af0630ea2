package io.deepep.testkit.oracle;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.ToIntBiFunction;
import java.util.stream.IntStream;

/**
 * What a normal-mode combine must return: for each token the sum of its rows at all ranks, in fp32,
 * rounded to BF16 once at the end. One more BF16 rounding is admitted for the partial sum of a rank
 * (expanded layout) and for that of a node (several nodes).
 */
public final class NormalCombineOracle {
    private static final String COMBINED = "combined x";

    private final Routing routing;
    private final int numNvlRanks;
    private final boolean expanded;
    private final List<Map<SourceRow, Integer>> places;

    private NormalCombineOracle(
            Routing routing,
            int numNvlRanks,
            boolean expanded,
            List<Map<SourceRow, Integer>> places) {
        this.routing = routing;
        this.numNvlRanks = numNvlRanks;
        this.expanded = expanded;
        this.places = places;
    }

    /** For rows in the order in which a dispatch of {@code check} delivers them. */
    public static NormalCombineOracle of(NormalDispatchCheck check, int numNvlRanks) {
        Routing routing = check.oracle().routing();
        List<Map<SourceRow, Integer>> places = new ArrayList<>();
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            places.add(index(check.sources(rank)));
        }
        return new NormalCombineOracle(routing, numNvlRanks, check.expanded(), places);
    }

    /**
     * The same for outputs that lie elsewhere: the caller says in which row of a rank's tensor.
     *
     * @param where by where a row comes from, and its place in the dispatch's order
     */
    public NormalCombineOracle at(ToIntBiFunction<SourceRow, Integer> where) {
        List<Map<SourceRow, Integer>> moved = new ArrayList<>();
        for (Map<SourceRow, Integer> each : places) {
            Map<SourceRow, Integer> rows = new HashMap<>();
            each.forEach((source, place) -> rows.put(source, where.applyAsInt(source, place)));
            moved.add(rows);
        }
        return new NormalCombineOracle(routing, numNvlRanks, expanded, moved);
    }

    private static Map<SourceRow, Integer> index(List<SourceRow> rows) {
        Map<SourceRow, Integer> places = new HashMap<>();
        for (int i = 0; i < rows.size(); i++) {
            places.put(rows.get(i), i);
        }
        return places;
    }

    /**
     * Compares a combined tensor; where rows travelled as FP8, bit for bit.
     *
     * @param src the rank whose tokens were combined
     * @param format what rows travelled as, BF16 or FP8
     * @param outputs for each rank what its experts computed, BF16 [N,H] on the host, in the
     *     dispatch's row order
     * @param biases BF16 [T,H] each
     * @param actual BF16 [T,H] on the host
     * @throws OracleMismatch at the first element out of bounds
     */
    public void check(
            int src,
            CombineFormat format,
            List<Tensor> outputs,
            List<Tensor> biases,
            Tensor actual) {
        if (format == CombineFormat.FP8) {
            checkFp8(src, outputs.getFirst(), castOf(outputs, src), biases, actual);
        } else {
            checkBf16(src, outputs, biases, actual);
        }
    }

    /**
     * Compares a combine of rows that were given as FP8, bit for bit.
     *
     * @param rows of each rank, on the host, in the dispatch's row order, which is not expanded
     */
    public void checkFp8Rows(int src, List<ScaledRows> rows, Tensor actual) {
        checkFp8(
                src,
                rows.getFirst().elements(),
                (token, rank) -> {
                    Integer place = places.get(rank).get(new SourceRow(src, token, -1));
                    return place == null ? null : Fp8Cast.given(rows.get(rank), place);
                },
                List.of(),
                actual);
    }

    private void checkBf16(int src, List<Tensor> outputs, List<Tensor> biases, Tensor actual) {
        int hidden = (int) outputs.getFirst().size(1);
        RowBits.requireShape(actual, COMBINED, DType.BF16, routing.numTokens(src), hidden);
        ExactRow total = new ExactRow(hidden);
        ExactRow node = new ExactRow(hidden);
        ExactRow one = new ExactRow(hidden);
        for (int token = 0; token < routing.numTokens(src); token++) {
            total.clear();
            for (int first = 0; first < routing.numRanks(); first += numNvlRanks) {
                node.clear();
                for (int rank = first; rank < first + numNvlRanks; rank++) {
                    sum(one, outputs.get(rank), src, token, rank);
                    node.add(one);
                }
                if (numNvlRanks < routing.numRanks()) {
                    node.allowRounding();
                }
                total.add(node);
            }
            for (Tensor bias : biases) {
                total.add(bias, token, 1);
            }
            total.allowRounding();
            total.requireNear(actual, token, "combine: rank " + src + ", token " + token);
        }
    }

    /** Makes {@code sum} what a rank sends of a token. */
    private void sum(ExactRow sum, Tensor output, int src, int token, int rank) {
        sum.clear();
        for (int place : placesOf(src, token, rank)) {
            sum.add(output, place, 1);
        }
        if (expanded) {
            sum.allowRounding();
        }
    }

    /** Where a rank's rows of a token are, in the order of selections. */
    private int[] placesOf(int src, int token, int rank) {
        return IntStream.range(expanded ? 0 : -1, expanded ? routing.numTopk() : 0)
                .mapToObj(k -> places.get(rank).get(new SourceRow(src, token, k)))
                .filter(Objects::nonNull)
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /** What a rank sends of a token; null if it holds no row of it. */
    private interface SentRow {
        Fp8Cast of(int token, int rank);
    }

    /**
     * Every rank sends FP8 rows, sums are in fp32 in the order of ranks, and another node's sum is
     * rounded to BF16 and cast once more.
     *
     * @param rows of some rank, for their width
     */
    private void checkFp8(int src, Tensor rows, SentRow sent, List<Tensor> biases, Tensor actual) {
        int hidden = (int) rows.size(1);
        RowBits.requireShape(actual, COMBINED, DType.BF16, routing.numTokens(src), hidden);
        int home = src / numNvlRanks * numNvlRanks;
        for (int token = 0; token < routing.numTokens(src); token++) {
            FloatRow total = new FloatRow(hidden);
            addSentRows(total, sent, token, home);
            for (int first = 0; first < routing.numRanks(); first += numNvlRanks) {
                FloatRow node = new FloatRow(hidden);
                if (first != home && addSentRows(node, sent, token, first) > 0) {
                    total.addTravelled(node.rounded(), CombineFormat.FP8, 1);
                }
            }
            for (Tensor bias : biases) {
                total.add(bias, token, 1);
            }
            total.requireSame(actual, token, "combine: rank " + src + ", token " + token);
        }
    }

    /** Adds what the ranks of a node, from {@code first} on, send of a token; returns how many. */
    private int addSentRows(FloatRow sum, SentRow sent, int token, int first) {
        int rows = 0;
        for (int rank = first; rank < first + numNvlRanks; rank++) {
            Fp8Cast row = sent.of(token, rank);
            if (row != null) {
                sum.add(row);
                rows++;
            }
        }
        return rows;
    }

    /** A rank sums a token's selections, rounds to BF16 and casts. */
    private SentRow castOf(List<Tensor> outputs, int src) {
        return (token, rank) -> {
            int[] rows = placesOf(src, token, rank);
            if (rows.length == 0) {
                return null;
            }
            FloatRow sum = new FloatRow((int) outputs.get(rank).size(1));
            for (int row : rows) {
                sum.add(outputs.get(rank), row, 1);
            }
            return Fp8Cast.of(sum.rounded(), LowLatencyFormat.FP8);
        };
    }

    /**
     * Compares combined weights.
     *
     * @param src the rank whose tokens were combined
     * @param given for each rank the weights it gave, F32 [N,K] (expanded: [M]) on the host
     * @param actual F32 [T,K] on the host
     */
    public void checkWeights(int src, List<Tensor> given, Tensor actual) {
        RowBits.requireShape(
                actual, "combined weights", DType.F32, routing.numTokens(src), routing.numTopk());
        for (int token = 0; token < routing.numTokens(src); token++) {
            for (int k = 0; k < routing.numTopk(); k++) {
                double sum = 0;
                double magnitude = 0;
                for (int rank = 0; rank < routing.numRanks(); rank++) {
                    double weight = weightAt(given.get(rank), rank, src, token, k);
                    sum += weight;
                    magnitude += Math.abs(weight);
                }
                requireWeight(src, token, k, sum, magnitude, actual);
            }
        }
    }

    /** {@link #checkWeights(int, List, Tensor)} where each rank gave the weights it received. */
    public void checkWeights(int src, Tensor actual) {
        for (int token = 0; token < routing.numTokens(src); token++) {
            for (int k = 0; k < routing.numTopk(); k++) {
                boolean masked = routing.expert(src, token, k) < 0;
                double sent = masked ? 0 : routing.weight(src, token, k);
                requireWeight(src, token, k, sent, Math.abs(sent), actual);
            }
        }
    }

    private void requireWeight(
            int src, int token, int k, double sum, double magnitude, Tensor actual) {
        float seen = actual.getFloat(token, k);
        double bound = routing.numRanks() * 0x1p-24 * magnitude;
        if (!(Math.abs(seen - sum) <= bound)) {
            throw new OracleMismatch(
                    "combined weight of rank %s, token %s, selection %s: expected %s ± %s, saw %s"
                            .formatted(src, token, k, sum, bound, seen));
        }
    }

    private double weightAt(Tensor given, int rank, int src, int token, int k) {
        Integer place = places.get(rank).get(new SourceRow(src, token, expanded ? k : -1));
        if (place == null) {
            return 0;
        }
        return expanded ? given.getFloat(place) : given.getFloat(place, k);
    }
}
