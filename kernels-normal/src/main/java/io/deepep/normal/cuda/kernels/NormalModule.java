package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.kernel.KernelHeader;
import java.net.URL;

/**
 * The kernels of normal mode, loaded onto one GPU. Loaded whole when the first buffer opens: a
 * first launch must not wait behind a kernel that waits for it.
 */
public final class NormalModule {
    /** Static shared memory and what the driver reserves stay below this. */
    private static final int RESERVED_SHARED_BYTES = 4096;

    public final CudaFunction dispatch;
    public final CudaFunction combine;
    public final CudaFunction combineFp8;
    public final CudaFunction expand;
    public final CudaFunction stage;
    public final CudaFunction cast;
    public final CudaFunction layout;
    public final CudaFunction offsets;
    public final InternodeKernels overPeerMemory;

    /** Dynamic shared memory a block can have. */
    public final int sharedBytes;

    public NormalModule(CudaContext context) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        dispatch = load(context, "normal_dispatch", NormalStructs.HEADER);
        combine = load(context, "normal_combine", NormalStructs.HEADER);
        combineFp8 = load(context, "normal_combine_fp8", NormalStructs.HEADER);
        expand = load(context, "normal_expand", NormalStructs.HEADER);
        stage = load(context, "normal_stage", NormalStructs.HEADER);
        cast = load(context, "normal_cast", NormalStructs.HEADER);
        layout = load(context, "normal_layout", NormalStructs.HEADER);
        offsets = load(context, "normal_offsets", NormalStructs.HEADER);
        overPeerMemory =
                new InternodeKernels(
                        load(context, "internode_dispatch", InternodeStructs.HEADER),
                        load(context, "internode_combine", InternodeStructs.HEADER),
                        load(context, "internode_combine_fp8", InternodeStructs.HEADER));
        overPeerMemory.allowSharedBytes(sharedBytes);
        dispatch.setMaxDynamicSharedBytes(sharedBytes);
        combine.setMaxDynamicSharedBytes(sharedBytes);
        combineFp8.setMaxDynamicSharedBytes(sharedBytes);
        expand.setMaxDynamicSharedBytes(sharedBytes);
    }

    private static CudaFunction load(CudaContext context, String name, KernelHeader header) {
        URL code = DeviceCode.find(NormalModule.class, "io/deepep/normal/" + name + ".fatbin");
        CudaModule module = CudaModule.loadResource(context, name, code);
        header.requireSame(module);
        return module.function("deepep_" + name);
    }
}
