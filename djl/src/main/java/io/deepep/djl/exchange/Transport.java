package io.deepep.djl.exchange;

/** How tokens travel to the experts. What the experts computed comes back as BF16. */
public enum Transport {
    /** 2 bytes per channel. */
    BF16,
    /** FP8 (E4M3) with a scale per 128 channels; the hidden size is a multiple of 128. */
    FP8
}
