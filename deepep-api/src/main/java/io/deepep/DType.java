package io.deepep;

/**
 * Element types of {@linkplain Tensor tensors}.
 *
 * <p>Elements are little-endian in memory. {@link Bf16} and {@link Fp8E4m3} convert single
 * elements.
 */
public enum DType {
    /** Brain floating point: the upper 16 bits of an IEEE binary32. */
    BF16(2),
    /** 8-bit float, 4 exponent and 3 mantissa bits, no infinities (OCP "E4M3FN"), maximum 448. */
    FP8_E4M3(1),
    /** IEEE binary32. */
    F32(4),
    /** 32-bit signed integer; also holds four packed scales, see {@link Ue8m0}. */
    I32(4),
    /** 64-bit signed integer. */
    I64(8),
    /** One byte, 0 or 1. */
    BOOL(1);

    private final int sizeBytes;

    DType(int sizeBytes) {
        this.sizeBytes = sizeBytes;
    }

    /** Size of one element in bytes. */
    public int sizeBytes() {
        return sizeBytes;
    }
}
