package io.deepep.cuda.nvshmem;

import io.deepep.cuda.CudaContext;

/** The GPU of a PE, as far as NVSHMEM needs it. */
interface NvshmemDevice extends AutoCloseable {
    /** A GPU's primary context, held until closed: NVSHMEM's memory and streams lie in it. */
    static NvshmemDevice of(CudaContext context) {
        CudaContext own = CudaContext.retain(context.cudaDevice());
        return new NvshmemDevice() {
            @Override
            public void makeCurrent() {
                own.makeCurrent();
            }

            @Override
            public void synchronize() {
                own.synchronize();
            }

            @Override
            public void close() {
                own.close();
            }

            @Override
            public String toString() {
                return own.toString();
            }
        };
    }

    /** For the calling thread. */
    void makeCurrent();

    /** Waits for the GPU; throws if the context is lost. */
    void synchronize();

    @Override
    void close();
}
