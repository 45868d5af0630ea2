package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The kernels of normal mode, loaded onto one GPU. All buffers of this process share them, until it
 * ends: to load or unload kernels is to wait for every kernel of the GPU, also for those of ranks
 * that wait for this one. Loaded when the first buffer opens, but for those that write queues,
 * which the first buffer that has some loads: a first launch must not wait behind a kernel that
 * waits for it.
 */
public final class NormalModule {
    private static final Map<CudaContext, NormalModule> LOADED = new ConcurrentHashMap<>();

    private final CudaContext context;
    private final Map<NormalStructs, CallKernels> oneNode = new HashMap<>();
    private final Map<Variant, CallKernels> acrossNodes = new ConcurrentHashMap<>();
    public final CudaFunction expand;
    public final CudaFunction stage;
    public final CudaFunction cast;
    public final CudaFunction layout;

    /** Dynamic shared memory that a block of those four can have. */
    public final int sharedBytes;

    private record Variant(NormalStructs structs, String kind) {}

    private NormalModule(CudaContext context) {
        this.context = context;
        expand = load(context, "normal_expand");
        stage = load(context, "normal_stage");
        cast = load(context, "normal_cast");
        layout = load(context, "normal_layout");
        sharedBytes = CallKernels.sharedBytes(context, NormalStructs.NARROW);
        expand.setMaxDynamicSharedBytes(sharedBytes);
        layout.setMaxDynamicSharedBytes(sharedBytes);
        for (NormalStructs structs : List.of(NormalStructs.NARROW, NormalStructs.WIDE)) {
            oneNode.put(structs, CallKernels.ofOneNode(context, structs));
            for (String kind : List.of("", CallKernels.MASKED)) {
                acrossNodes(structs, kind);
            }
        }
    }

    /** The same object for every context of one GPU. */
    public static NormalModule of(CudaContext context) {
        return LOADED.computeIfAbsent(CudaContext.shared(context.cudaDevice()), NormalModule::new);
    }

    /** Those of one node. */
    public CallKernels oneNode(NormalStructs structs) {
        return oneNode.get(structs);
    }

    /** Those of several nodes that need no library; {@code kind}: as in their names. */
    public CallKernels acrossNodes(NormalStructs structs, String kind) {
        return acrossNodes.computeIfAbsent(
                new Variant(structs, kind), _ -> CallKernels.acrossNodes(context, structs, kind));
    }

    private static CudaFunction load(CudaContext context, String name) {
        return CallKernels.function(CallKernels.module(context, name), NormalStructs.HEADER, name);
    }
}
