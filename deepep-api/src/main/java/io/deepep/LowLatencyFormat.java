package io.deepep;

/**
 * What travels in a low-latency dispatch, and what the receiver gets. Tokens are always given as
 * BF16; the sender casts to FP8, per 128 channels.
 */
public enum LowLatencyFormat {
    /** BF16 rows, no scales. */
    BF16,
    /** FP8 rows, F32 scales amax/448. */
    FP8,
    /** FP8 rows, F32 scales rounded up to powers of two. */
    FP8_POWER_OF_TWO,
    /** FP8 rows, power-of-two scales as packed UE8M0, four in an I32. */
    FP8_UE8M0;

    /** Whether rows are FP8. */
    public boolean isFp8() {
        return this != BF16;
    }
}
