package io.deepep.normal.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;

/**
 * The kernels of normal mode, loaded onto one GPU. Loaded whole when a buffer opens: a first launch
 * must not wait behind a kernel that waits for it.
 */
final class NormalModule implements AutoCloseable {
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

    private final CudaModule[] modules = new CudaModule[6];

    NormalModule(CudaContext context) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        dispatch = load(context, 0, "dispatch");
        combine = load(context, 1, "combine");
        expand = load(context, 2, "expand");
        stage = load(context, 3, "stage");
        layout = load(context, 4, "layout");
        offsets = load(context, 5, "offsets");
        dispatch.setMaxDynamicSharedBytes(sharedBytes);
        combine.setMaxDynamicSharedBytes(sharedBytes);
        expand.setMaxDynamicSharedBytes(sharedBytes);
    }

    private CudaFunction load(CudaContext context, int idx, String name) {
        modules[idx] =
                CudaModule.loadResource(
                        context,
                        CudaNormalKernels.class,
                        "/io/deepep/normal/normal_" + name + ".fatbin");
        return modules[idx].function("deepep_normal_" + name);
    }

    @Override
    public void close() {
        for (CudaModule module : modules) {
            module.close();
        }
    }
}
