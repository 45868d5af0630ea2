package io.deepep.cuda.nvshmem;

/** Something of a PE that has to be released before NVSHMEM ends. */
abstract sealed class NvshmemPart implements AutoCloseable
        permits NvshmemMemory, NvshmemModule {
    private final Nvshmem nvshmem;

    NvshmemPart(Nvshmem nvshmem) {
        this.nvshmem = nvshmem;
    }

    final Nvshmem nvshmem() {
        return nvshmem;
    }

    /** The call that {@link #releaseIn} makes, for messages. */
    abstract String releaseCall();

    /** Gives it back to NVSHMEM; on NVSHMEM's thread. */
    abstract void releaseIn(NvshmemLibrary library);

    /**
     * After that, or where NVSHMEM was given up, on the caller's thread; perhaps more than once.
     */
    void released() {}

    /**
     * Releases it. Collective among the PEs that share it. Idempotent; nothing is left to do once
     * NVSHMEM is closed.
     */
    @Override
    public final void close() {
        nvshmem.release(this);
    }
}
