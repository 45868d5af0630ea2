package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
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

    /** While ranks may be masked. */
    public final InternodeKernels maskedOverPeerMemory;

    /** Dynamic shared memory a block can have. */
    public final int sharedBytes;

    public NormalModule(CudaContext context) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        dispatch = load(context, "normal_dispatch");
        combine = load(context, "normal_combine");
        combineFp8 = load(context, "normal_combine_fp8");
        expand = load(context, "normal_expand");
        stage = load(context, "normal_stage");
        cast = load(context, "normal_cast");
        layout = load(context, "normal_layout");
        offsets = load(context, "normal_offsets");
        overPeerMemory = acrossNodes(context, "internode_");
        maskedOverPeerMemory = acrossNodes(context, "internode_masked_");
        dispatch.setMaxDynamicSharedBytes(sharedBytes);
        combine.setMaxDynamicSharedBytes(sharedBytes);
        combineFp8.setMaxDynamicSharedBytes(sharedBytes);
        expand.setMaxDynamicSharedBytes(sharedBytes);
    }

    private InternodeKernels acrossNodes(CudaContext context, String prefix) {
        return new InternodeKernels(
                        InternodeKernels.load(context, prefix + "dispatch"),
                        InternodeKernels.load(context, prefix + "combine"),
                        InternodeKernels.load(context, prefix + "combine_fp8"))
                .withSharedBytes(sharedBytes);
    }

    private static CudaFunction load(CudaContext context, String name) {
        URL code = DeviceCode.find(NormalModule.class, "io/deepep/normal/" + name + ".fatbin");
        CudaModule module = CudaModule.loadResource(context, name, code);
        NormalStructs.HEADER.requireSame(module);
        return module.function("deepep_" + name);
    }
}
