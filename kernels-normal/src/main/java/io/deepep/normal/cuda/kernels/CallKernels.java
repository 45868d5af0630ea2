package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.kernel.KernelHeader;
import java.net.URL;
import java.util.function.Function;

/** The kernels of calls within a node, or across nodes for one way to reach them. */
public record CallKernels(CudaFunction dispatch, CudaFunction combine, CudaFunction combineFp8) {
    private static final String FOLDER = "io/deepep/normal/";
    private static final String LIBRARY_FOLDER = FOLDER + "nvshmem/";

    /** Static shared memory and what the driver reserves stay below this. */
    private static final int RESERVED_SHARED_BYTES = 4096;

    /** The same of kernels for large nodes, which have a header of each rank there. */
    private static final int WIDE_RESERVED_SHARED_BYTES = 20480;

    /** Of names: those that know masks. */
    public static final String MASKED = "masked_";

    /** The same of those that write queues of a network card themselves; comes last. */
    public static final String QUEUES = "ibgda_";

    /** Those of one node. */
    static CallKernels ofOneNode(CudaContext context, NormalStructs structs) {
        return load(
                context,
                structs,
                structs.header(),
                call -> prefix("normal_", structs) + call,
                name -> module(context, name));
    }

    /** Those across nodes that call a library; {@code kind}: as in their names. */
    public static CallKernels over(
            NetworkLibrary library, CudaContext context, NormalStructs structs, String kind) {
        return load(
                context,
                structs,
                structs.internodeHeader(),
                call -> prefix("internode_", structs) + kind + call + "_nvshmem",
                name -> library.load(name, find(name)));
    }

    /** Those that need no library; {@code kind}: what their names have before the call. */
    static CallKernels acrossNodes(CudaContext context, NormalStructs structs, String kind) {
        return load(
                context,
                structs,
                structs.internodeHeader(),
                call -> prefix("internode_", structs) + kind + call,
                name -> module(context, name));
    }

    private static String prefix(String mode, NormalStructs structs) {
        return structs == NormalStructs.WIDE ? mode + "wide_" : mode;
    }

    private static CallKernels load(
            CudaContext context,
            NormalStructs structs,
            KernelHeader header,
            Function<String, String> nameOf,
            Function<String, CudaModule> loader) {
        int sharedBytes = sharedBytes(context, structs);
        Function<String, CudaFunction> load =
                call -> {
                    String name = nameOf.apply(call);
                    CudaFunction kernel = function(loader.apply(name), header, name);
                    kernel.setMaxDynamicSharedBytes(sharedBytes);
                    return kernel;
                };
        return new CallKernels(
                load.apply("dispatch"), load.apply("combine"), load.apply("combine_fp8"));
    }

    static CudaModule module(CudaContext context, String name) {
        URL code = DeviceCode.find(CallKernels.class, FOLDER + name + ".fatbin");
        return CudaModule.loadResource(context, name, code);
    }

    /** The kernel of a module that was built with Java's structs. */
    static CudaFunction function(CudaModule module, KernelHeader header, String name) {
        header.requireSame(module);
        return module.function("deepep_" + name);
    }

    /** Dynamic shared memory that a block can have, of kernels with these structs. */
    public static int sharedBytes(CudaContext context, NormalStructs structs) {
        int reserved =
                structs == NormalStructs.WIDE ? WIDE_RESERVED_SHARED_BYTES : RESERVED_SHARED_BYTES;
        return context.cudaDevice().maxSharedBytesPerBlock() - reserved;
    }

    private static URL find(String name) {
        return DeviceCode.find(CallKernels.class, LIBRARY_FOLDER + name + ".fatbin");
    }

    /** Whether there are any here that call a library. */
    public static boolean areBuiltForLibrary() {
        return find("internode_dispatch_nvshmem") != null;
    }

    /** The combine whose rows travel in FP8, or in BF16. */
    public CudaFunction combine(boolean fp8) {
        return fp8 ? combineFp8 : combine;
    }
}
