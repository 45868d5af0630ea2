package io.deepep.cuda.nvshmem;

import io.deepep.cuda.CudaContext;

/** The GPU of a PE, as far as NVSHMEM needs it. */
interface NvshmemDevice {
    /**
     * The GPU of a context. NVSHMEM's memory and streams lie in the one that the process keeps: a
     * lost thread may work in it to the end.
     */
    static NvshmemDevice of(CudaContext context) {
        CudaContext shared = CudaContext.shared(context.cudaDevice());
        return new NvshmemDevice() {
            @Override
            public void makeCurrent() {
                shared.makeCurrent();
            }

            @Override
            public void synchronize() {
                shared.synchronize();
            }

            @Override
            public String toString() {
                return shared.toString();
            }
        };
    }

    /** For the calling thread. */
    void makeCurrent();

    /** Waits for the GPU; throws if the context is lost. */
    void synchronize();
}
