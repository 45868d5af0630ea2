package io.deepep.cuda.nvshmem;

import java.util.function.Consumer;

/** Something of a PE that has to be released before NVSHMEM ends: memory, or a module. */
class NvshmemPart implements AutoCloseable {
    private final Nvshmem nvshmem;
    private final String releaseCall;
    private final Consumer<NvshmemLibrary> release;
    private final Runnable released;

    /**
     * What is to be released.
     *
     * @param releaseCall the call that {@code release} makes, for messages
     * @param release gives it back to NVSHMEM; on NVSHMEM's thread
     * @param released after that, or where NVSHMEM was given up, on the caller's thread; perhaps
     *     more than once
     */
    NvshmemPart(
            Nvshmem nvshmem,
            String releaseCall,
            Consumer<NvshmemLibrary> release,
            Runnable released) {
        this.nvshmem = nvshmem;
        this.releaseCall = releaseCall;
        this.release = release;
        this.released = released;
    }

    final Nvshmem nvshmem() {
        return nvshmem;
    }

    final String releaseCall() {
        return releaseCall;
    }

    final void releaseIn(NvshmemLibrary library) {
        release.accept(library);
    }

    final void released() {
        released.run();
    }

    /**
     * Releases it. Collective among the PEs that share it. Idempotent; nothing is left to do once
     * NVSHMEM is closed.
     */
    @Override
    public final void close() {
        nvshmem.release(this);
    }
}
