package io.deepep.normal.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.cuda.kernels.NormalModule;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the normal modes of all buffers of this process share on one GPU, from the first one's
 * opening until the process ends. To load kernels, to unload them and to free page-locked memory is
 * to wait for every kernel of the GPU, also for those of ranks that wait for this one; so it is
 * done once, or never.
 */
final class NormalGpu {
    private static final Map<Integer, NormalGpu> GPUS = new ConcurrentHashMap<>();

    final CudaContext context;
    final NormalModule kernels;
    final PinnedSlots slots;

    private NormalGpu(CudaContext context) {
        this.context = context;
        this.kernels = new NormalModule(context);
        this.slots = new PinnedSlots(context);
    }

    /** The same object for every context of one GPU. */
    static NormalGpu of(CudaContext context) {
        return GPUS.computeIfAbsent(
                context.cudaDevice().ordinal(),
                _ -> new NormalGpu(CudaContext.shared(context.cudaDevice())));
    }
}
