package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.NetworkLibrary;
import java.net.URL;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The kernels of normal mode across nodes, for one way to reach them. */
public record InternodeKernels(
        CudaFunction dispatch, CudaFunction combine, CudaFunction combineFp8) {
    private static final String FOLDER = "io/deepep/normal/";
    private static final String LIBRARY_FOLDER = FOLDER + "nvshmem/";

    /** By GPU, and kept: to load kernels is to wait for those of the GPU. */
    private static final Map<Integer, InternodeKernels> OVER_QUEUES = new ConcurrentHashMap<>();

    /** Those that call a library. */
    public static InternodeKernels over(NetworkLibrary library, int sharedBytes) {
        return new InternodeKernels(
                        load(library, "internode_dispatch_nvshmem"),
                        load(library, "internode_combine_nvshmem"),
                        load(library, "internode_combine_fp8_nvshmem"))
                .withSharedBytes(sharedBytes);
    }

    /** Those that write queues of a network card themselves. */
    public static InternodeKernels overQueues(CudaContext context, int sharedBytes) {
        return OVER_QUEUES.computeIfAbsent(
                context.cudaDevice().ordinal(),
                _ ->
                        new InternodeKernels(
                                        load(context, "internode_ibgda_dispatch"),
                                        load(context, "internode_ibgda_combine"),
                                        load(context, "internode_ibgda_combine_fp8"))
                                .withSharedBytes(sharedBytes));
    }

    /** The combine whose rows travel in FP8, or in BF16. */
    public CudaFunction combine(boolean fp8) {
        return fp8 ? combineFp8 : combine;
    }

    InternodeKernels withSharedBytes(int sharedBytes) {
        dispatch.setMaxDynamicSharedBytes(sharedBytes);
        combine.setMaxDynamicSharedBytes(sharedBytes);
        combineFp8.setMaxDynamicSharedBytes(sharedBytes);
        return this;
    }

    static CudaFunction load(CudaContext context, String name) {
        URL code = DeviceCode.find(InternodeKernels.class, FOLDER + name + ".fatbin");
        return function(CudaModule.loadResource(context, name, code), name);
    }

    private static CudaFunction load(NetworkLibrary library, String name) {
        return function(library.load(name, find(name)), name);
    }

    private static CudaFunction function(CudaModule module, String name) {
        InternodeStructs.HEADER.requireSame(module);
        return module.function("deepep_" + name);
    }

    private static URL find(String name) {
        return DeviceCode.find(InternodeKernels.class, LIBRARY_FOLDER + name + ".fatbin");
    }

    /** Whether there are any here. */
    public static boolean areBuilt() {
        return find("internode_dispatch_nvshmem") != null;
    }
}
