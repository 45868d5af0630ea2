package io.deepep.djl.exchange;

/** The format in which tokens travel to the experts. The experts' results travel as BF16. */
public enum Transport {
    /** BF16, 2 bytes per channel. */
    BF16,
    /** FP8 (E4M3) with a scale for each 128 channels. */
    FP8
}
