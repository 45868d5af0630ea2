package io.deepep.djl.exchange;

import io.deepep.Fp8E4m3;

/** The format in which tokens travel to the experts. The experts' results travel as BF16. */
public enum Transport {
    /** BF16, 2 bytes per channel. */
    BF16,
    /**
     * FP8 (E4M3) with a scale for each 128 channels; in normal mode, the hidden size must be a
     * multiple of 128.
     */
    FP8;

    /**
     * Refuses rows that cannot travel like this in normal mode.
     *
     * @throws IllegalArgumentException if this is FP8 and {@code hidden} is not a multiple of 128
     */
    public void requireHidden(int hidden) {
        if (this == FP8 && hidden % Fp8E4m3.CHANNELS_PER_SCALE != 0) {
            throw new IllegalArgumentException(
                    "hidden=%s is not a multiple of %s, as FP8 transport needs in normal mode; use Transport.BF16"
                            .formatted(hidden, Fp8E4m3.CHANNELS_PER_SCALE));
        }
    }
}
