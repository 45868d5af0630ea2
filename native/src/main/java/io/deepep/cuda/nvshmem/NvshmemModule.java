package io.deepep.cuda.nvshmem;

import java.util.function.LongSupplier;

/** Device code that calls NVSHMEM, made part of this PE. */
public final class NvshmemModule extends NvshmemPart {
    private final LongSupplier module;
    private final Runnable unload;

    /**
     * Wraps a registered module.
     *
     * @param module its handle; throws if somebody has unloaded it
     */
    NvshmemModule(Nvshmem nvshmem, LongSupplier module, Runnable unload) {
        super(nvshmem);
        this.module = module;
        this.unload = unload;
    }

    @Override
    String releaseCall() {
        return "nvshmemx_cumodule_finalize";
    }

    @Override
    void releaseIn(NvshmemLibrary library) {
        library.moduleFinalize(module.getAsLong());
    }

    /** NVSHMEM writes into modules as long as they are registered: only now are they unloaded. */
    @Override
    void released() {
        unload.run();
    }
}
