package io.deepep.lowlatency.cuda;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.memory.PinnedSlots;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * What the low-latency modes of all buffers of this process share on one GPU, from the first one's
 * opening until the process ends. To load or unload kernels is to wait for every kernel of the GPU,
 * also for those of ranks that wait for this one; so it is done once, or never.
 */
public final class LowLatencyGpu {
    private static final String FOLDER = "io/deepep/lowlatency/";
    private static final String LIBRARY_FOLDER = FOLDER + "nvshmem/";
    private static final String LIBRARY_SUFFIX = "_nvshmem";
    private static final String MAPPED_KERNELS = "internode_";
    private static final String QUEUE_KERNELS = "ibgda_";
    private static final String WIDE_KERNELS = "wide_";

    private static final Map<Key, LowLatencyGpu> GPUS = new ConcurrentHashMap<>();

    /** A GPU, and what distinguishes the binaries: {@code lowlatency_} + kernels + operation. */
    private record Key(int ordinal, String kernels) {}

    /** What the kernels were built with. */
    final LowLatencyStructs structs;

    final CudaFunction dispatchBf16;
    final CudaFunction dispatchFp8;
    private final Map<CombineFormat, CudaFunction> combine = new EnumMap<>(CombineFormat.class);
    private final Map<CombineFormat, CudaFunction> combineReduced =
            new EnumMap<>(CombineFormat.class);
    final PinnedSlots slots;

    /** Dynamic shared memory a block can have. */
    final int sharedBytes;

    private LowLatencyGpu(
            CudaContext context, LowLatencyStructs structs, Function<String, CudaModule> load) {
        this.structs = structs;
        this.sharedBytes =
                context.cudaDevice().maxSharedBytesPerBlock() - structs.reservedSharedBytes();
        CudaModule dispatch = load.apply("dispatch");
        CudaModule combines = load.apply("combine");
        this.dispatchBf16 = function(dispatch, "dispatch_bf16");
        this.dispatchFp8 = function(dispatch, "dispatch_fp8");
        for (CombineFormat format : CombineFormat.values()) {
            String name = format.name().toLowerCase(Locale.ROOT);
            this.combine.put(format, function(combines, "combine_" + name));
            this.combineReduced.put(format, function(combines, "combine_reduced_" + name));
        }
        this.slots = PinnedSlots.ofProcess(context);
    }

    /** The kernel of a combine. */
    CudaFunction combine(LowLatencyCombinePlan plan) {
        return (plan.isPreReduced() ? combineReduced : combine).get(plan.format());
    }

    private CudaFunction function(CudaModule module, String name) {
        structs.header.requireSame(module);
        CudaFunction function = module.function("deepep_lowlatency_" + name);
        function.setMaxDynamicSharedBytes(sharedBytes);
        return function;
    }

    /** The kernels that reach other ranks as the place says. */
    static LowLatencyGpu of(LowLatencyPlace place) {
        CudaContext context = place.context();
        LowLatencyStructs structs = LowLatencyStructs.of(place.topology().numRanks());
        return switch (place.network()) {
            case null -> shared(context, structs, place.isSmallNode() ? "" : MAPPED_KERNELS);
            case LowLatencyPlace.Queues _ -> shared(context, structs, QUEUE_KERNELS);
            case LowLatencyPlace.Library over -> over(over.library(), context, structs);
        };
    }

    /**
     * Loads the kernels over mapped memory onto a GPU unless this process has them there: those of
     * one small node, and of larger ones and of several virtual ones. To load is to wait for every
     * kernel of the GPU, so this comes before any that waits for another rank.
     */
    public static void load(CudaContext context) {
        shared(context, LowLatencyStructs.ONE_WORD, "");
        shared(context, LowLatencyStructs.ONE_WORD, MAPPED_KERNELS);
        shared(context, LowLatencyStructs.WIDE, MAPPED_KERNELS);
    }

    /** The same object for every context of one GPU. */
    private static LowLatencyGpu shared(
            CudaContext given, LowLatencyStructs structs, String reach) {
        CudaContext context = CudaContext.shared(given.cudaDevice());
        String kernels = width(structs) + reach;
        return GPUS.computeIfAbsent(
                new Key(context.cudaDevice().ordinal(), kernels),
                _ ->
                        new LowLatencyGpu(
                                context, structs, operation -> load(context, kernels + operation)));
    }

    /** What names of kernels for large groups begin with. */
    private static String width(LowLatencyStructs structs) {
        return structs == LowLatencyStructs.WIDE ? WIDE_KERNELS : "";
    }

    private static CudaModule load(CudaContext context, String name) {
        String fatbin = fatbin(name);
        return CudaModule.loadResource(
                context, fatbin, DeviceCode.find(LowLatencyGpu.class, FOLDER + fatbin));
    }

    private static String fatbin(String name) {
        return "lowlatency_" + name + ".fatbin";
    }

    /** Whether this build has the kernels that write queues themselves. */
    public static boolean hasQueueKernels() {
        return DeviceCode.find(LowLatencyGpu.class, FOLDER + fatbin(QUEUE_KERNELS + "dispatch"))
                != null;
    }

    /** Those that call a library, which keeps them as long as it runs. */
    private static LowLatencyGpu over(
            NetworkLibrary library, CudaContext context, LowLatencyStructs structs) {
        return new LowLatencyGpu(
                context,
                structs,
                operation -> load(library, libraryKernels(width(structs) + operation)));
    }

    private static CudaModule load(NetworkLibrary library, String resource) {
        return library.load(resource, DeviceCode.find(LowLatencyGpu.class, resource));
    }

    private static String libraryKernels(String name) {
        return LIBRARY_FOLDER + "lowlatency_" + name + LIBRARY_SUFFIX + ".fatbin";
    }

    /** Whether this build has the kernels that reach other nodes through NVSHMEM. */
    public static boolean hasLibraryKernels() {
        return DeviceCode.find(LowLatencyGpu.class, libraryKernels("dispatch")) != null;
    }
}
