package io.deepep.normal.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;

/**
 * The kernels of normal mode, loaded onto one GPU. Loaded whole when the first buffer opens: a
 * first launch must not wait behind a kernel that waits for it.
 */
final class NormalModule {
    /** Static shared memory and what the driver reserves stay below this. */
    private static final int RESERVED_SHARED_BYTES = 4096;

    final CudaFunction dispatch;
    final CudaFunction combine;
    final CudaFunction expand;
    final CudaFunction stage;
    final CudaFunction layout;
    final CudaFunction offsets;

    /** Dynamic shared memory a block can have. */
    final int sharedBytes;

    NormalModule(CudaContext context) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        dispatch = load(context, "dispatch");
        combine = load(context, "combine");
        expand = load(context, "expand");
        stage = load(context, "stage");
        layout = load(context, "layout");
        offsets = load(context, "offsets");
        dispatch.setMaxDynamicSharedBytes(sharedBytes);
        combine.setMaxDynamicSharedBytes(sharedBytes);
        expand.setMaxDynamicSharedBytes(sharedBytes);
    }

    private static CudaFunction load(CudaContext context, String name) {
        CudaModule module =
                CudaModule.loadResource(
                        context,
                        CudaNormalKernels.class,
                        "/io/deepep/normal/normal_" + name + ".fatbin");
        NormalStructs.HEADER.requireSame(module);
        return module.function("deepep_normal_" + name);
    }
}
