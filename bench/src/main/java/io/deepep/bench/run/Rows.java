package io.deepep.bench.run;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.Tokens;
import java.lang.foreign.Arena;
import java.util.zip.CRC32C;

/** Rows that stand for what experts compute, and fingerprints of results. */
public final class Rows {
    /** Different rows; a prime, so that a row in a wrong place hardly meets its like. */
    public static final int DIFFERENT_ROWS = 61;

    private Rows() {}

    /**
     * BF16 [rows, hidden] of ordinary numbers. Cheap: it repeats after {@value #DIFFERENT_ROWS}
     * rows.
     */
    public static Tensor expertOutputs(int rows, int hidden, long seed) {
        return expertOutputs(Arena.ofAuto(), rows, hidden, seed);
    }

    /** The same in memory that lives as long as {@code arena}. */
    public static Tensor expertOutputs(Arena arena, int rows, int hidden, long seed) {
        Tensor pattern = differentOutputs(hidden, seed);
        Tensor all = Tensor.allocate(arena, DType.BF16, rows, hidden);
        for (long row = 0; row < rows; row++) {
            HostTensors.copy(pattern.select(0, row % DIFFERENT_ROWS), all.select(0, row));
        }
        return all;
    }

    /** The rows that {@link #expertOutputs} repeats. */
    public static Tensor differentOutputs(int hidden, long seed) {
        return Tokens.expertOutputs(DIFFERENT_ROWS, hidden, seed);
    }

    /** Rows of {@link #expertOutputs} as FP8, as cheap, in memory of {@code arena}. */
    public static ScaledRows fp8(Arena arena, Tensor outputs) {
        long rows = outputs.size(0);
        long hidden = outputs.size(1);
        long groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
        Tensor codes = Tensor.allocate(arena, DType.FP8_E4M3, rows, hidden);
        Tensor scales = Tensor.allocate(arena, DType.F32, rows, groups);
        long different = Math.min(rows, DIFFERENT_ROWS);
        Fp8E4m3.quantize(
                outputs.slice(0, 0, different),
                codes.slice(0, 0, different),
                scales.slice(0, 0, different));
        for (long row = different; row < rows; row++) {
            HostTensors.copy(codes.select(0, row % DIFFERENT_ROWS), codes.select(0, row));
            HostTensors.copy(scales.select(0, row % DIFFERENT_ROWS), scales.select(0, row));
        }
        return new ScaledRows(codes, scales);
    }

    /** A checksum of all bits of the first {@code rows} rows; rows are contiguous. */
    public static long fingerprint(Tensor matrix, long rows) {
        CRC32C crc = new CRC32C();
        long bytes = matrix.size(1) * matrix.dtype().sizeBytes();
        for (long row = 0; row < rows; row++) {
            crc.update(matrix.segment().asSlice(matrix.offsetBytes(row, 0), bytes).asByteBuffer());
        }
        return crc.getValue();
    }
}
