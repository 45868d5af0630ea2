package io.deepep.bench;

/** What {@code --backend} takes. */
enum BackendName {
    /** Java moves the bytes. */
    HOST,
    /** CUDA kernels move the bytes. */
    CUDA,
    /** {@link #CUDA} where it works, else {@link #HOST}; the report says which, and why. */
    AUTO
}
