package io.deepep.spi;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;

/**
 * The format of a token's row in symmetric memory and on links. This is the only place that knows
 * where the parts of a row begin; layouts, kernel launches and size estimates use it.
 *
 * <pre>
 *   elements  [hidden]        BF16 or FP8
 *   scales    [hidden / 128]  F32, only with FP8
 *   padding                   zeros up to a 128-byte line, which NVLink moves 12 to 15 % faster
 * </pre>
 *
 * If a row carries its selections, as in low-latency mode over a network, they are before the
 * padding, aligned to 16 bytes: i32 or u32 {@code [numTopk]}, a word for the number of the row,
 * then F32 weights {@code [numTopk]}.
 *
 * @param dtype type of the elements, BF16 or FP8_E4M3
 * @param hidden elements of a row; with FP8, a remainder of fewer than 128 has no scale
 */
public record RowFormat(DType dtype, int hidden) {
    private static final int VECTOR_BYTES = 16;

    /** Validates the type. */
    public RowFormat {
        if (dtype != DType.BF16 && dtype != DType.FP8_E4M3) {
            throw new IllegalArgumentException(
                    "dtype=" + dtype + " is not a type of rows; use BF16 or FP8_E4M3");
        }
    }

    /**
     * Demands that rows given by an engine have as many elements as calls can move.
     *
     * @throws IllegalArgumentException if they have not
     */
    public static void requireHidden(DType dtype, long hidden) {
        int multiple = dtype == DType.FP8_E4M3 ? Fp8E4m3.CHANNELS_PER_SCALE : VECTOR_BYTES / 2;
        if (hidden < multiple || hidden % multiple != 0) {
            throw new IllegalArgumentException(
                    "hidden=%s is not a positive multiple of %s, as %s needs"
                            .formatted(hidden, multiple, dtype));
        }
    }

    /**
     * Demands that they have no more than a buffer has room for.
     *
     * @param limit what the limit is called
     * @throws IllegalArgumentException if they have
     */
    public static void requireWithin(long hidden, String limit, int most) {
        if (hidden > most) {
            throw new IllegalArgumentException(
                    "hidden=%s exceeds %s=%s; raise the limit".formatted(hidden, limit, most));
        }
    }

    /** BF16 rows. */
    public static RowFormat bf16(int hidden) {
        return new RowFormat(DType.BF16, hidden);
    }

    /** FP8 rows with their scales. */
    public static RowFormat fp8(int hidden) {
        return new RowFormat(DType.FP8_E4M3, hidden);
    }

    /** Bytes from one row to the next if rows of either type must fit. */
    public static long maxStrideBytes(int hidden) {
        return Math.max(bf16(hidden).strideBytes(), fp8(hidden).strideBytes());
    }

    /** Bytes of the elements; the scales follow them. */
    public long elementBytes() {
        return (long) dtype.sizeBytes() * hidden;
    }

    /** Number of scales, 0 for BF16. */
    public int numScales() {
        return dtype == DType.FP8_E4M3 ? hidden / Fp8E4m3.CHANNELS_PER_SCALE : 0;
    }

    /** Bytes of the scales. */
    public long scaleBytes() {
        return (long) Float.BYTES * numScales();
    }

    /** Bytes of the elements and scales: the payload of a row. */
    public long dataBytes() {
        return elementBytes() + scaleBytes();
    }

    /** Bytes from one row to the next: data and padding. */
    public long strideBytes() {
        return Layout.alignToLine(dataBytes());
    }

    /**
     * Whether FP8 rows lie in memory as this format says: each on a line, its scales behind its
     * elements, the next one a stride further.
     */
    public boolean isFormOf(Tensor elements, Tensor scales) {
        long stride = strideBytes();
        return dtype == DType.FP8_E4M3
                && elements.dtype() == dtype
                && elements.size(1) == hidden
                && elements.address() % Layout.LINE_BYTES == 0
                && elements.stride(0) * dtype.sizeBytes() == stride
                && scales.address() == elements.address() + elementBytes()
                && scales.stride(0) * Float.BYTES == stride
                && (numScales() == 1 || scales.stride(1) == 1);
    }

    /** Offset in bytes of the selections, in a row that carries them. */
    public long selectionsOffset() {
        return Math.ceilDiv(dataBytes(), VECTOR_BYTES) * VECTOR_BYTES;
    }

    /** Offset in bytes of the weights, after {@code numTopk} selections and a word. */
    public long weightsOffset(int numTopk) {
        return selectionsOffset() + (long) Integer.BYTES * (numTopk + 1);
    }

    /** Bytes from one row to the next if rows carry {@code numTopk} selections and weights. */
    public long strideBytes(int numTopk) {
        return Layout.alignToLine(weightsOffset(numTopk) + (long) Float.BYTES * numTopk);
    }
}
