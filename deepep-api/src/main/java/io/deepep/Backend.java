package io.deepep;

/** Who moves the bytes. */
public enum Backend {
    /** Plain Java over off-heap memory, ranks as threads; needs nothing. */
    HOST,
    /** CUDA kernels. */
    CUDA,
    /** {@link #CUDA} where it works, else {@link #HOST}; which one, and why, is logged. */
    AUTO
}
