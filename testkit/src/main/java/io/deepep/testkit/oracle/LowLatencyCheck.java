package io.deepep.testkit.oracle;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Compares the results of a low-latency dispatch and combine with the oracle.
 *
 * @param oracle of the routing
 * @param tokens what each rank dispatches, BF16
 * @param format what travels
 * @param maxTokens of the buffer's limits: the rows of an expert are {@code numRanks * maxTokens}
 */
public record LowLatencyCheck(
        LowLatencyOracle oracle, List<Tokens> tokens, LowLatencyFormat format, int maxTokens) {
    /** Compares a dispatch bit for bit. Its event is over, its hook has run. */
    public void checkDispatch(
            int rank, LowLatencyDispatchResult result, UnaryOperator<Tensor> download) {
        String at = "low-latency dispatch at rank " + rank + ": ";
        Routing routing = oracle.routing();
        int experts = routing.numLocalExperts();
        long rows = (long) routing.numRanks() * maxTokens;
        long hidden = tokens.get(rank).x().size(1);
        RowBits.requireInts(
                oracle.counts(rank), download.apply(result.recvCount()), at + "recvCount");
        DType dtype = format.isFp8() ? DType.FP8_E4M3 : DType.BF16;
        RowBits.requireShape(result.recvX(), at + "recvX", dtype, experts, rows, hidden);
        requireScaleShape(result.recvScales(), at, experts, rows, hidden);
        RowBits.requireShape(result.handle().srcInfo(), at + "srcInfo", DType.I32, experts, rows);
        Tensor x = download.apply(result.recvX());
        Tensor scales = format.isFp8() ? download.apply(result.recvScales()) : null;
        Tensor srcInfo = download.apply(result.handle().srcInfo());
        for (int expert = 0; expert < experts; expert++) {
            List<SourceRow> sources = oracle.rows(rank, expert);
            for (int row = 0; row < sources.size(); row++) {
                SourceRow source = sources.get(row);
                String what = at + "expert " + expert + ", row " + row + " from " + source;
                OracleMismatch.requireEqual(
                        what + ", srcInfo", (long) source.token(), srcInfo.getLong(expert, row));
                checkRow(source, x.select(0, expert), scales, expert, row, what);
            }
        }
        checkRange(rank, download.apply(result.handle().layoutRange()), at);
    }

    private void requireScaleShape(Tensor scales, String at, int experts, long rows, long hidden) {
        String name = at + "recvScales";
        switch (format) {
            case BF16 -> OracleMismatch.requireNull(name, scales);
            case FP8, FP8_POWER_OF_TWO ->
                    RowBits.requireShape(scales, name, DType.F32, experts, rows, hidden / 128);
            case FP8_UE8M0 ->
                    RowBits.requireShape(
                            scales, name, DType.I32, experts, rows, (hidden + 511) / 512);
        }
        if (scales != null && rows > 1) {
            OracleMismatch.requireEqual(name + ".stride(1), column-major", 1L, scales.stride(1));
        }
    }

    private void checkRow(
            SourceRow source, Tensor x, Tensor scales, int expert, int row, String what) {
        Tensor sent = tokens.get(source.srcRank()).x();
        if (!format.isFp8()) {
            RowBits.requireRow(sent, source.token(), x, row, what);
            return;
        }
        Fp8Cast cast = Fp8Cast.of(sent, source.token(), format);
        byte[] codes = cast.codes();
        MemorySegment seenCodes = x.segment().asSlice(x.offsetBytes(row, 0), codes.length);
        long h = MemorySegment.ofArray(codes).mismatch(seenCodes);
        if (h >= 0) {
            throw new OracleMismatch(
                    "%s, code of channel %s: expected %s, saw %s"
                            .formatted(what, h, codes[(int) h] & 0xff, x.getLong(row, h)));
        }
        long[] expected = scaleBits(cast);
        for (int i = 0; i < expected.length; i++) {
            long seen = scales.getLong(expert, row, i);
            if (seen != expected[i]) {
                throw new OracleMismatch(
                        "%s, bits of scale %s: expected %x, saw %x"
                                .formatted(what, i, expected[i], seen));
            }
        }
    }

    private long[] scaleBits(Fp8Cast cast) {
        if (format == LowLatencyFormat.FP8_UE8M0) {
            return Arrays.stream(cast.packedScales()).asLongStream().toArray();
        }
        float[] scales = cast.scales();
        long[] bits = new long[scales.length];
        for (int i = 0; i < bits.length; i++) {
            bits[i] = Float.floatToRawIntBits(scales[i]) & 0xffffffffL;
        }
        return bits;
    }

    private void checkRange(int rank, Tensor range, String at) {
        Routing routing = oracle.routing();
        RowBits.requireShape(
                range,
                at + "layoutRange",
                DType.I64,
                routing.numLocalExperts(),
                routing.numRanks());
        for (int expert = 0; expert < routing.numLocalExperts(); expert++) {
            for (int src = 0; src < routing.numRanks(); src++) {
                String what = at + "layoutRange[" + expert + "][" + src + "]";
                long seen = range.getLong(expert, src);
                int count = oracle.countFrom(rank, expert, src);
                // DeepEP's packing, spelled out: the host backend packs by the accessors.
                OracleMismatch.requireEqual(what + ", count", count, (int) seen);
                if (count > 0) {
                    long begin = oracle.beginOf(rank, expert, src);
                    OracleMismatch.requireEqual(what + ", begin", begin, seen >> 32);
                }
            }
        }
    }

    /**
     * Compares a combine with the weighted sums: FP8 bit for bit, the others within their bounds.
     *
     * @param src the rank whose tokens were combined
     * @param sent what rows travelled as
     * @param outputs for each rank what its experts computed, BF16 [El, R*maxTokens, H] on the host
     * @param actual BF16 [T,H] on the host
     */
    public void checkCombine(int src, CombineFormat sent, List<Tensor> outputs, Tensor actual) {
        long hidden = outputs.getFirst().size(2);
        RowBits.requireShape(
                actual, "combined x", DType.BF16, oracle.routing().numTokens(src), hidden);
        switch (sent) {
            case FP8 -> checkFp8Combine(src, outputs, actual);
            case BF16, LOGFMT -> checkNearCombine(src, sent, outputs, actual);
        }
    }

    private void checkNearCombine(
            int src, CombineFormat sent, List<Tensor> outputs, Tensor actual) {
        ExactRow sum = new ExactRow((int) actual.size(1));
        for (int token = 0; token < oracle.routing().numTokens(src); token++) {
            sum.clear();
            oracle.forRows(src, token, _ -> true, outputs, sum::add);
            if (sent == CombineFormat.LOGFMT) {
                sum.allowLogFmt();
            }
            sum.allowRounding();
            sum.requireNear(actual, token, combined(src, token));
        }
    }

    /**
     * Each row is cast, and what arrives is weighted and summed in fp32, in the order of
     * selections.
     */
    private void checkFp8Combine(int src, List<Tensor> outputs, Tensor actual) {
        FloatRow sum = new FloatRow((int) actual.size(1));
        for (int token = 0; token < oracle.routing().numTokens(src); token++) {
            sum.clear();
            oracle.forRows(
                    src,
                    token,
                    _ -> true,
                    outputs,
                    (rows, row, weight) ->
                            sum.addTravelled(
                                    rows.getFloats(row), CombineFormat.FP8, (float) weight));
            sum.requireSame(actual, token, combined(src, token));
        }
    }

    private static String combined(int src, int token) {
        return "low-latency combine: rank " + src + ", token " + token;
    }
}
