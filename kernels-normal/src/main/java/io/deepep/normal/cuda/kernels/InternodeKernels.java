package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.NetworkLibrary;
import java.net.URL;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** The kernels of normal mode across nodes, for one way to reach them. */
public record InternodeKernels(
        CudaFunction dispatch, CudaFunction combine, CudaFunction combineFp8) {
    private static final String FOLDER = "io/deepep/normal/";
    private static final String LIBRARY_FOLDER = FOLDER + "nvshmem/";

    /** What kernels were built with, and the GPU that they are loaded onto. */
    private record Loaded(InternodeStructs structs, String kind, int gpu) {}

    /** Of names: those that know masks. */
    public static final String MASKED = "masked_";

    /** Kept: to load kernels is to wait for those of the GPU. */
    private static final Map<Loaded, InternodeKernels> OVER_QUEUES = new ConcurrentHashMap<>();

    /** Those that call a library; {@code kind}: as in their names. */
    public static InternodeKernels over(
            NetworkLibrary library, InternodeStructs structs, String kind, int sharedBytes) {
        return load(structs, kind, "_nvshmem", sharedBytes, name -> library.load(name, find(name)));
    }

    /** Those that write queues of a network card themselves; {@code kind}: as in their names. */
    public static InternodeKernels overQueues(
            CudaContext context, InternodeStructs structs, String kind, int sharedBytes) {
        return OVER_QUEUES.computeIfAbsent(
                new Loaded(structs, kind, context.cudaDevice().ordinal()),
                _ -> load(context, structs, kind + "ibgda_", sharedBytes));
    }

    /** The combine whose rows travel in FP8, or in BF16. */
    public CudaFunction combine(boolean fp8) {
        return fp8 ? combineFp8 : combine;
    }

    /** Those that need no library; {@code kind}: what their names have before the call. */
    static InternodeKernels load(
            CudaContext context, InternodeStructs structs, String kind, int sharedBytes) {
        return load(
                structs,
                kind,
                "",
                sharedBytes,
                name -> {
                    URL code = DeviceCode.find(InternodeKernels.class, FOLDER + name + ".fatbin");
                    return CudaModule.loadResource(context, name, code);
                });
    }

    private static InternodeKernels load(
            InternodeStructs structs,
            String kind,
            String suffix,
            int sharedBytes,
            Function<String, CudaModule> loader) {
        String prefix =
                (structs == InternodeStructs.WIDE ? "internode_wide_" : "internode_") + kind;
        Function<String, CudaFunction> function =
                call -> {
                    String name = prefix + call + suffix;
                    CudaModule module = loader.apply(name);
                    structs.header.requireSame(module);
                    CudaFunction kernel = module.function("deepep_" + name);
                    kernel.setMaxDynamicSharedBytes(sharedBytes);
                    return kernel;
                };
        return new InternodeKernels(
                function.apply("dispatch"),
                function.apply("combine"),
                function.apply("combine_fp8"));
    }

    private static URL find(String name) {
        return DeviceCode.find(InternodeKernels.class, LIBRARY_FOLDER + name + ".fatbin");
    }

    /** Whether there are any here. */
    public static boolean areBuilt() {
        return find("internode_dispatch_nvshmem") != null;
    }
}
