package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.PinnedSlots;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the low-latency modes of all buffers of this process share on one GPU, from the first one's
 * opening until the process ends. To load or unload kernels is to wait for every kernel of the GPU,
 * also for those of ranks that wait for this one; so it is done once, or never.
 */
final class LowLatencyGpu {
    /** Static shared memory and what the driver reserves stay below this. */
    private static final int RESERVED_SHARED_BYTES = 4096;

    private static final Map<Key, LowLatencyGpu> GPUS = new ConcurrentHashMap<>();

    /** A GPU, and which of the binaries, see {@link CudaLowLatencyKernels.Place#kernels}. */
    private record Key(int ordinal, String kernels) {}

    final CudaFunction dispatchBf16;
    final CudaFunction dispatchFp8;
    final CudaFunction combineBf16;
    final CudaFunction combineLogFmt;
    final PinnedSlots slots;

    /** Dynamic shared memory a block can have. */
    final int sharedBytes;

    private LowLatencyGpu(CudaContext context, String kernels) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        CudaModule dispatch = load(context, kernels + "dispatch");
        CudaModule combine = load(context, kernels + "combine");
        dispatchBf16 = function(dispatch, "dispatch_bf16");
        dispatchFp8 = function(dispatch, "dispatch_fp8");
        combineBf16 = function(combine, "combine_bf16");
        combineLogFmt = function(combine, "combine_logfmt");
        slots = new PinnedSlots(context);
    }

    private static CudaModule load(CudaContext context, String name) {
        CudaModule module =
                CudaModule.loadResource(
                        context,
                        CudaLowLatencyKernels.class,
                        "/io/deepep/lowlatency/lowlatency_" + name + ".fatbin");
        LowLatencyStructs.HEADER.requireSame(module);
        return module;
    }

    private CudaFunction function(CudaModule module, String name) {
        CudaFunction function = module.function("deepep_lowlatency_" + name);
        function.setMaxDynamicSharedBytes(sharedBytes);
        return function;
    }

    /** The same object for every context of one GPU. */
    static LowLatencyGpu of(CudaContext context, String kernels) {
        return GPUS.computeIfAbsent(
                new Key(context.cudaDevice().ordinal(), kernels),
                _ -> new LowLatencyGpu(CudaContext.shared(context.cudaDevice()), kernels));
    }
}
