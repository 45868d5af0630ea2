package io.deepep.testkit.oracle;

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
 * Compares the result of a low-latency dispatch with the oracle, bit for bit.
 *
 * @param oracle of the routing
 * @param tokens what each rank dispatches, BF16
 * @param format what travels
 * @param maxTokens of the buffer's limits: the rows of an expert are {@code numRanks * maxTokens}
 */
public record LowLatencyCheck(
        LowLatencyOracle oracle, List<Tokens> tokens, LowLatencyFormat format, int maxTokens) {
    /** Compares. The event of the dispatch is over, its hook has run. */
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
}
