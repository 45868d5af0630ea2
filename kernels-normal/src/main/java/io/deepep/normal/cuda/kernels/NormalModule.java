package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.kernel.KernelHeader;
import java.net.URL;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The kernels of normal mode, loaded onto one GPU. Loaded whole when the first buffer opens: a
 * first launch must not wait behind a kernel that waits for it.
 */
public final class NormalModule {
    /** Static shared memory and what the driver reserves stay below this. */
    private static final int RESERVED_SHARED_BYTES = 4096;

    /** The same of kernels for large nodes, which have a header of each rank there. */
    private static final int WIDE_RESERVED_SHARED_BYTES = 20480;

    private final OneNodeKernels oneNode;
    private final OneNodeKernels largeNode;
    private final Map<OverPeerMemory, InternodeKernels> overPeerMemory = new HashMap<>();

    public final CudaFunction expand;
    public final CudaFunction stage;
    public final CudaFunction cast;
    public final CudaFunction layout;

    /** Dynamic shared memory a block can have, but for kernels of large nodes. */
    public final int sharedBytes;

    private record OverPeerMemory(InternodeStructs structs, String kind) {}

    /**
     * The kernels that know the ranks of one node.
     *
     * @param structs what they were built with
     * @param sharedBytes dynamic shared memory a block can have
     */
    public record OneNodeKernels(
            NormalStructs structs,
            CudaFunction dispatch,
            CudaFunction combine,
            CudaFunction combineFp8,
            int sharedBytes) {
        static OneNodeKernels load(CudaContext context, NormalStructs structs) {
            boolean wide = structs == NormalStructs.WIDE;
            String prefix = wide ? "normal_wide_" : "normal_";
            int reserved = wide ? WIDE_RESERVED_SHARED_BYTES : RESERVED_SHARED_BYTES;
            int shared = context.cudaDevice().maxSharedBytesPerBlock() - reserved;
            KernelHeader header = structs.header();
            OneNodeKernels kernels =
                    new OneNodeKernels(
                            structs,
                            NormalModule.load(context, header, prefix + "dispatch"),
                            NormalModule.load(context, header, prefix + "combine"),
                            NormalModule.load(context, header, prefix + "combine_fp8"),
                            shared);
            kernels.dispatch.setMaxDynamicSharedBytes(shared);
            kernels.combine.setMaxDynamicSharedBytes(shared);
            kernels.combineFp8.setMaxDynamicSharedBytes(shared);
            return kernels;
        }
    }

    public NormalModule(CudaContext context) {
        sharedBytes = context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
        oneNode = OneNodeKernels.load(context, NormalStructs.NARROW);
        largeNode = OneNodeKernels.load(context, NormalStructs.WIDE);
        expand = load(context, "normal_expand");
        stage = load(context, "normal_stage");
        cast = load(context, "normal_cast");
        layout = load(context, "normal_layout");
        for (String kind : List.of("", InternodeKernels.MASKED)) {
            for (InternodeStructs structs :
                    List.of(InternodeStructs.NARROW, InternodeStructs.WIDE)) {
                int shared = oneNode(structs.local).sharedBytes();
                overPeerMemory.put(
                        new OverPeerMemory(structs, kind),
                        InternodeKernels.load(context, structs, kind, shared));
            }
        }
        expand.setMaxDynamicSharedBytes(sharedBytes);
        layout.setMaxDynamicSharedBytes(sharedBytes);
    }

    /** Those of one node. */
    public OneNodeKernels oneNode(NormalStructs structs) {
        return structs == NormalStructs.WIDE ? largeNode : oneNode;
    }

    /** Those of several nodes whose memory is mapped; {@code kind}: as in their names. */
    public InternodeKernels overPeerMemory(InternodeStructs structs, String kind) {
        return overPeerMemory.get(new OverPeerMemory(structs, kind));
    }

    private static CudaFunction load(CudaContext context, String name) {
        return load(context, NormalStructs.HEADER, name);
    }

    private static CudaFunction load(CudaContext context, KernelHeader header, String name) {
        URL code = DeviceCode.find(NormalModule.class, "io/deepep/normal/" + name + ".fatbin");
        CudaModule module = CudaModule.loadResource(context, name, code);
        header.requireSame(module);
        return module.function("deepep_" + name);
    }
}
