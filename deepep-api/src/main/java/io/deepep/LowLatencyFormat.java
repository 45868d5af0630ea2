package io.deepep;

/**
 * The format in which rows travel in a low-latency dispatch, and in which the receiver gets them.
 * Tokens are always given as BF16; for FP8, the sender casts them, with one scale for each 128
 * channels.
 */
public enum LowLatencyFormat {
    /** BF16 rows, no scales. They are copied byte for byte, so they may hold any bytes. */
    BF16,
    /** FP8 rows with F32 scales amax/448, see {@link Fp8E4m3#quantize}. */
    FP8,
    /** FP8 rows with F32 scales, rounded up to powers of two. */
    FP8_POWER_OF_TWO,
    /** FP8 rows with power-of-two scales as packed {@linkplain Ue8m0 UE8M0}, four in an I32. */
    FP8_UE8M0;

    /** Whether rows are FP8. */
    public boolean isFp8() {
        return this != BF16;
    }
}
