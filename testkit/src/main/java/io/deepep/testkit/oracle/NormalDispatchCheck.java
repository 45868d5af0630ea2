package io.deepep.testkit.oracle;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * Compares the result of a normal-mode dispatch with the oracle, bit for bit.
 *
 * @param oracle of the routing
 * @param tokens what each rank dispatched
 * @param expanded whether rows are grouped by expert
 * @param alignment of the counts
 * @param worstRows rows in worst-case mode, else 0
 * @param withTopk whether indices were given; not so for cached dispatches and by layout alone
 * @param withWeights whether weights were given
 */
public record NormalDispatchCheck(
        NormalOracle oracle,
        List<Tokens> tokens,
        boolean expanded,
        int alignment,
        int worstRows,
        boolean withTopk,
        boolean withWeights) {
    /** A plain dispatch with indices and weights. */
    public static NormalDispatchCheck of(NormalOracle oracle, List<Tokens> tokens) {
        return new NormalDispatchCheck(oracle, List.copyOf(tokens), false, 1, 0, true, true);
    }

    /** For another exchange, in the same form. */
    public NormalDispatchCheck with(NormalOracle other, List<Tokens> sent) {
        return new NormalDispatchCheck(
                other, List.copyOf(sent), expanded, alignment, worstRows, withTopk, withWeights);
    }

    /** For the expanded layout. */
    public NormalDispatchCheck expanded(int expertAlignment) {
        return new NormalDispatchCheck(
                oracle, tokens, true, expertAlignment, worstRows, withTopk, withWeights);
    }

    /** For aligned counts. */
    public NormalDispatchCheck aligned(int expertAlignment) {
        return new NormalDispatchCheck(
                oracle, tokens, expanded, expertAlignment, worstRows, withTopk, withWeights);
    }

    /** For worst-case mode. */
    public NormalDispatchCheck worstCase(int rows) {
        return new NormalDispatchCheck(
                oracle, tokens, expanded, alignment, rows, withTopk, withWeights);
    }

    /** Without indices, counts and weights. */
    public NormalDispatchCheck withoutTopk() {
        return new NormalDispatchCheck(
                oracle, tokens, expanded, alignment, worstRows, false, false);
    }

    /** Without weights. */
    public NormalDispatchCheck withoutWeights() {
        return new NormalDispatchCheck(
                oracle, tokens, expanded, alignment, worstRows, withTopk, false);
    }

    /** Rows of the result at {@code rank}. */
    public int numRows(int rank) {
        return worstRows > 0 ? worstRows : sources(rank).size();
    }

    /** Rows of the rank that receives most, at least one. */
    public int mostRows() {
        return IntStream.range(0, tokens.size()).map(this::numRows).reduce(1, Math::max);
    }

    /** Where the rows of the result at {@code rank} come from. */
    public List<SourceRow> sources(int rank) {
        return expanded ? oracle.expandedRows(rank, alignment) : oracle.rows(rank);
    }

    /**
     * Compares. The result's event is over.
     *
     * @param download brings a tensor to the host; may be the identity on the host backend
     * @throws OracleMismatch at the first difference
     */
    public void check(int rank, DispatchResult result, UnaryOperator<Tensor> download) {
        new Comparison(rank, result, download).run();
    }

    /** The comparison of what one rank received. */
    private final class Comparison {
        private final int rank;
        private final List<SourceRow> sources;
        private final int rows;
        private final DispatchResult result;
        private final UnaryOperator<Tensor> download;
        private final String at;
        private final Routing routing = oracle.routing();

        Comparison(int rank, DispatchResult result, UnaryOperator<Tensor> download) {
            this.rank = rank;
            this.sources = sources(rank);
            this.rows = numRows(rank);
            this.result = result;
            this.download = download;
            this.at = "dispatch at rank " + rank + ": ";
        }

        void run() {
            OracleMismatch.requireEqual(at + "numRecvTokens", rows, result.numRecvTokens());
            checkRows();
            checkCounts();
            if (expanded) {
                OracleMismatch.requireNull(at + "recvTopkIdx", result.recvTopkIdx());
                checkExpandedWeights();
            } else {
                checkTopk();
            }
            checkHandle(result.handle());
        }

        /** A tensor of the result on the host; null if none is wanted, and none must be there. */
        private Tensor fetch(
                String name, boolean wanted, Tensor tensor, DType dtype, long... shape) {
            OracleMismatch.requireEqual(at + name, wanted, tensor != null);
            if (!wanted) {
                return null;
            }
            RowBits.requireShape(tensor, at + name, dtype, shape);
            return download.apply(tensor);
        }

        private Tensor fetchWeights(long... shape) {
            return fetch(
                    "recvTopkWeights", withWeights, result.recvTopkWeights(), DType.F32, shape);
        }

        private void checkRows() {
            Tokens own = tokens.get(rank);
            boolean scaled = own.scales() != null;
            Tensor x = fetch("recvX", true, result.recvX(), own.x().dtype(), rows, own.x().size(1));
            long groups = scaled ? own.scales().size(1) : 0;
            Tensor scales =
                    fetch("recvScales", scaled, result.recvScales(), DType.F32, rows, groups);
            for (int row = 0; row < sources.size(); row++) {
                SourceRow source = sources.get(row);
                String what = at + "row " + row + " from " + source;
                if (source.isPadding()) {
                    RowBits.requireZero(x, row, what);
                    continue;
                }
                Tokens from = tokens.get(source.srcRank());
                RowBits.requireRow(from.x(), source.token(), x, row, what);
                if (scaled) {
                    requireScales(from.scales(), source.token(), scales, row, what);
                }
            }
        }

        private void checkTopk() {
            int numTopk = routing.numTopk();
            Tensor idx =
                    fetch("recvTopkIdx", withTopk, result.recvTopkIdx(), DType.I64, rows, numTopk);
            Tensor weights = fetchWeights(rows, numTopk);
            for (int row = 0; withTopk && row < rows; row++) {
                boolean tail = row >= sources.size();
                long[] experts = tail ? null : oracle.localExperts(rank, sources.get(row));
                float[] sent = tail ? null : oracle.localWeights(rank, sources.get(row));
                for (int k = 0; k < numTopk; k++) {
                    String what = at + "row " + row + ", selection " + k;
                    OracleMismatch.requireEqual(what, tail ? -1 : experts[k], idx.getLong(row, k));
                    if (withWeights && !tail) {
                        requireWeight(sent[k], weights.getFloat(row, k), what);
                    }
                }
            }
        }

        private void checkExpandedWeights() {
            Tensor weights = fetchWeights(rows);
            for (int row = 0; withWeights && row < sources.size(); row++) {
                SourceRow s = sources.get(row);
                float sent =
                        s.isPadding() ? 0 : routing.weight(s.srcRank(), s.token(), s.selection());
                String what = at + "expanded row " + row + " from " + s;
                requireWeight(sent, weights.getFloat(row), what);
            }
        }

        private void checkCounts() {
            if (withTopk) {
                int[] counts = oracle.counts(rank, alignment);
                String what = at + "numRecvTokensPerExpert";
                RowBits.requireInts(counts, result.numRecvTokensPerExpert(), what);
            } else {
                OracleMismatch.requireNull(at + "counts", result.numRecvTokensPerExpert());
            }
            int[] ends = oracle.expertOffsets(rank, alignment);
            Tensor offsets =
                    fetch(
                            "expertOffsets",
                            expanded,
                            result.expertOffsets(),
                            DType.I32,
                            ends.length);
            if (expanded) {
                RowBits.requireInts(ends, offsets, at + "expertOffsets");
            }
        }

        private void checkHandle(DispatchHandle handle) {
            String its = at + "handle.";
            int received = worstRows > 0 ? worstRows : oracle.rows(rank).size();
            int hidden = (int) tokens.get(rank).x().size(1);
            OracleMismatch.requireEqual(
                    its + "numTokens", routing.numTokens(rank), handle.numTokens());
            OracleMismatch.requireEqual(its + "numRecvTokens", received, handle.numRecvTokens());
            OracleMismatch.requireEqual(its + "hidden", hidden, handle.hidden());
            OracleMismatch.requireEqual(its + "expanded", expanded, handle.expanded());
            if (withTopk) {
                OracleMismatch.requireEqual(its + "numTopk", routing.numTopk(), handle.numTopk());
                OracleMismatch.requireEqual(
                        its + "numExperts", routing.numExperts(), handle.numExperts());
            }
        }
    }

    private static void requireScales(
            Tensor sent, int token, Tensor received, int row, String what) {
        for (int group = 0; group < sent.size(1); group++) {
            OracleMismatch.require(
                    sent.getLong(token, group) == received.getLong(row, group),
                    what + ", scale " + group,
                    sent.getFloat(token, group),
                    received.getFloat(row, group));
        }
    }

    private static void requireWeight(float expected, float seen, String what) {
        OracleMismatch.require(
                Float.floatToRawIntBits(expected) == Float.floatToRawIntBits(seen),
                what + ", weight",
                expected,
                seen);
    }
}
