package io.deepep.testkit.oracle;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.function.UnaryOperator;

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
        String at = "dispatch at rank " + rank + ": ";
        List<SourceRow> sources = sources(rank);
        OracleMismatch.require(
                result.numRecvTokens() == numRows(rank),
                at + "numRecvTokens",
                numRows(rank),
                result.numRecvTokens());
        checkRows(rank, sources, at, result, download);
        checkCounts(rank, at, result, download);
        if (expanded) {
            OracleMismatch.require(
                    result.recvTopkIdx() == null, at + "recvTopkIdx", null, result.recvTopkIdx());
            checkExpandedWeights(rank, sources, at, result, download);
        } else {
            checkTopk(rank, sources, at, result, download);
        }
        checkHandle(rank, at, result.handle());
    }

    private void checkRows(
            int rank,
            List<SourceRow> sources,
            String at,
            DispatchResult result,
            UnaryOperator<Tensor> download) {
        Tensor sent = tokens.get(rank).x();
        RowBits.requireShape(
                result.recvX(), at + "recvX", sent.dtype(), numRows(rank), sent.size(1));
        Tensor x = download.apply(result.recvX());
        boolean scaled = tokens.get(rank).scales() != null;
        OracleMismatch.require(
                scaled == (result.recvScales() != null), at + "recvScales", scaled, !scaled);
        Tensor scales = null;
        if (scaled) {
            long groups = tokens.get(rank).scales().size(1);
            RowBits.requireShape(
                    result.recvScales(), at + "recvScales", DType.F32, numRows(rank), groups);
            scales = download.apply(result.recvScales());
        }
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

    private void checkTopk(
            int rank,
            List<SourceRow> sources,
            String at,
            DispatchResult result,
            UnaryOperator<Tensor> download) {
        OracleMismatch.require(
                withTopk == (result.recvTopkIdx() != null),
                at + "recvTopkIdx",
                withTopk,
                !withTopk);
        OracleMismatch.require(
                withWeights == (result.recvTopkWeights() != null),
                at + "recvTopkWeights",
                withWeights,
                !withWeights);
        if (!withTopk) {
            return;
        }
        int numTopk = oracle.routing().numTopk();
        int rows = numRows(rank);
        RowBits.requireShape(result.recvTopkIdx(), at + "recvTopkIdx", DType.I64, rows, numTopk);
        Tensor idx = download.apply(result.recvTopkIdx());
        Tensor weights = null;
        if (withWeights) {
            RowBits.requireShape(
                    result.recvTopkWeights(), at + "recvTopkWeights", DType.F32, rows, numTopk);
            weights = download.apply(result.recvTopkWeights());
        }
        for (int row = 0; row < rows; row++) {
            boolean tail = row >= sources.size();
            long[] experts = tail ? null : oracle.localExperts(rank, sources.get(row));
            float[] sent = tail ? null : oracle.localWeights(rank, sources.get(row));
            for (int k = 0; k < numTopk; k++) {
                String what = at + "row " + row + ", selection " + k;
                long expert = tail ? -1 : experts[k];
                OracleMismatch.require(
                        idx.getLong(row, k) == expert, what, expert, idx.getLong(row, k));
                if (withWeights && !tail) {
                    requireWeight(sent[k], weights.getFloat(row, k), what);
                }
            }
        }
    }

    private void checkExpandedWeights(
            int rank,
            List<SourceRow> sources,
            String at,
            DispatchResult result,
            UnaryOperator<Tensor> download) {
        if (!withWeights) {
            OracleMismatch.require(
                    result.recvTopkWeights() == null, at + "recvTopkWeights", null, "weights");
            return;
        }
        RowBits.requireShape(
                result.recvTopkWeights(), at + "recvTopkWeights", DType.F32, numRows(rank));
        Tensor weights = download.apply(result.recvTopkWeights());
        Routing routing = oracle.routing();
        for (int row = 0; row < sources.size(); row++) {
            SourceRow s = sources.get(row);
            float sent = s.isPadding() ? 0 : routing.weight(s.srcRank(), s.token(), s.selection());
            requireWeight(sent, weights.getFloat(row), at + "expanded row " + row + " from " + s);
        }
    }

    private static void requireWeight(float expected, float seen, String what) {
        OracleMismatch.require(
                Float.floatToRawIntBits(expected) == Float.floatToRawIntBits(seen),
                what + ", weight",
                expected,
                seen);
    }

    private void checkCounts(
            int rank, String at, DispatchResult result, UnaryOperator<Tensor> download) {
        if (!withTopk) {
            OracleMismatch.require(
                    result.numRecvTokensPerExpert() == null, at + "counts", null, "counts");
            return;
        }
        requireInts(
                oracle.counts(rank, alignment),
                result.numRecvTokensPerExpert(),
                at + "numRecvTokensPerExpert");
        OracleMismatch.require(
                expanded == (result.expertOffsets() != null), at + "offsets", expanded, !expanded);
        if (expanded) {
            int[] offsets = oracle.expertOffsets(rank, alignment);
            RowBits.requireShape(
                    result.expertOffsets(), at + "expertOffsets", DType.I32, offsets.length);
            requireInts(offsets, download.apply(result.expertOffsets()), at + "expertOffsets");
        }
    }

    static void requireInts(int[] expected, Tensor actual, String what) {
        RowBits.requireShape(actual, what, DType.I32, expected.length);
        for (int i = 0; i < expected.length; i++) {
            OracleMismatch.require(
                    actual.getLong(i) == expected[i],
                    what + "[" + i + "]",
                    expected[i],
                    actual.getLong(i));
        }
    }

    private void checkHandle(int rank, String at, DispatchHandle handle) {
        Routing routing = oracle.routing();
        requireEqual(at + "handle.numTokens", routing.numTokens(rank), handle.numTokens());
        int received = worstRows > 0 ? worstRows : oracle.rows(rank).size();
        requireEqual(at + "handle.numRecvTokens", received, handle.numRecvTokens());
        requireEqual(at + "handle.hidden", (int) tokens.get(rank).x().size(1), handle.hidden());
        if (handle.expanded() != expanded) {
            throw new OracleMismatch(at + "handle.expanded: expected " + expanded);
        }
        if (withTopk) {
            requireEqual(at + "handle.numTopk", routing.numTopk(), handle.numTopk());
            requireEqual(at + "handle.numExperts", routing.numExperts(), handle.numExperts());
        }
    }

    private static void requireEqual(String what, int expected, int seen) {
        OracleMismatch.require(expected == seen, what, expected, seen);
    }
}
