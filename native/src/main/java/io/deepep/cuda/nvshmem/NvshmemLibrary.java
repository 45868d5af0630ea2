package io.deepep.cuda.nvshmem;

import static io.deepep.cuda.driver.NativeLibrary.call;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The host library's functions. None of them protects itself: called out of order or with wrong
 * arguments, many end the process. {@link Nvshmem} and its parts see to it that this cannot happen.
 */
final class NvshmemLibrary {
    /** {@code init_status} from which on PEs can communicate. */
    static final int STATUS_INITIALIZED = 2;

    /** Several PEs share a GPU, and there is no MPS that guarantees them their share: no teams. */
    static final int STATUS_LIMITED_SHARING = 3;

    static final int TEAM_WORLD = 0;
    static final int TEAM_INVALID = -1;

    private static final int INIT_WITH_UNIQUE_ID = 1 << 3;

    private final MethodHandle getVersion;
    private final MethodHandle getUniqueId;
    private final MethodHandle setUniqueIdArgs;
    private final MethodHandle initAttr;
    private final MethodHandle initStatus;
    private final MethodHandle hostFinalize;
    private final MethodHandle globalExit;
    private final MethodHandle align;
    private final MethodHandle free;
    private final MethodHandle pointer;
    private final MethodHandle barrierAll;
    private final MethodHandle quietOnStream;
    private final MethodHandle teamSplit;
    private final MethodHandle teamDestroy;
    private final MethodHandle teamMyPe;
    private final MethodHandle teamNumPes;
    private final MethodHandle moduleInit;
    private final MethodHandle moduleFinalize;

    private NvshmemLibrary(NativeLibrary library) {
        getVersion =
                library.bind(
                        "nvshmemx_vendor_get_version_info", nothing(ADDRESS, ADDRESS, ADDRESS));
        getUniqueId = library.bind("nvshmemx_get_uniqueid", number(ADDRESS));
        setUniqueIdArgs =
                library.bind(
                        "nvshmemx_set_attr_uniqueid_args",
                        number(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
        initAttr = library.bind("nvshmemx_hostlib_init_attr", number(JAVA_INT, ADDRESS));
        initStatus = library.bind("nvshmemx_init_status", number());
        hostFinalize = library.bind("nvshmemx_hostlib_finalize", nothing());
        globalExit = library.bind("nvshmem_global_exit", nothing(JAVA_INT));
        align =
                library.bind(
                        "nvshmem_align", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));
        free = library.bind("nvshmem_free", nothing(JAVA_LONG));
        pointer =
                library.bind("nvshmem_ptr", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT));
        barrierAll = library.bind("nvshmem_barrier_all", nothing());
        quietOnStream = library.bind("nvshmemx_quiet_on_stream", nothing(JAVA_LONG));
        teamSplit =
                library.bind(
                        "nvshmem_team_split_strided",
                        number(
                                JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_LONG,
                                ADDRESS));
        teamDestroy = library.bind("nvshmem_team_destroy", nothing(JAVA_INT));
        teamMyPe = library.bind("nvshmem_team_my_pe", number(JAVA_INT));
        teamNumPes = library.bind("nvshmem_team_n_pes", number(JAVA_INT));
        moduleInit = library.bind("nvshmemx_cumodule_init", number(JAVA_LONG));
        moduleFinalize = library.bind("nvshmemx_cumodule_finalize", number(JAVA_LONG));
    }

    private static FunctionDescriptor number(MemoryLayout... parameters) {
        return FunctionDescriptor.of(JAVA_INT, parameters);
    }

    private static FunctionDescriptor nothing(MemoryLayout... parameters) {
        return FunctionDescriptor.ofVoid(parameters);
    }

    /**
     * Loads an installation; its version is checked.
     *
     * @throws DeepEpUnavailableException if it cannot be loaded or is not of a version we can use
     */
    static NvshmemLibrary load(NvshmemInstallation installation) {
        String file = installation.library().toAbsolutePath().toString();
        NvshmemLibrary bound =
                new NvshmemLibrary(NativeLibrary.require(file, NvshmemInstallation.CURE));
        NvshmemVersion version = bound.version();
        if (!version.isSupported()) {
            throw new DeepEpUnavailableException(
                    "%s is NVSHMEM %s, which does not support device code of %s"
                            .formatted(file, version, NvshmemVersion.DEVICE),
                    NvshmemInstallation.CURE);
        }
        return bound;
    }

    NvshmemVersion version() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parts = arena.allocate(JAVA_INT, 3);
            call(getVersion, parts, parts.asSlice(4), parts.asSlice(8));
            return new NvshmemVersion(
                    parts.getAtIndex(JAVA_INT, 0),
                    parts.getAtIndex(JAVA_INT, 1),
                    parts.getAtIndex(JAVA_INT, 2));
        }
    }

    int getUniqueId(MemorySegment id) {
        return (int) call(getUniqueId, id);
    }

    /** Keeps pointers to both segments until {@link #init} has returned. */
    int setUniqueIdArgs(int pe, int numPes, MemorySegment id, MemorySegment attr) {
        return (int) call(setUniqueIdArgs, pe, numPes, id, attr);
    }

    /** Returns 0 even where starting failed: ask {@link #initStatus}. */
    int init(MemorySegment attr) {
        return (int) call(initAttr, INIT_WITH_UNIQUE_ID, attr);
    }

    int initStatus() {
        return (int) call(initStatus);
    }

    /** Ends the process if the CUDA context is lost. */
    void shutDown() {
        call(hostFinalize);
    }

    /**
     * With the bootstrap by unique id this ends nothing but NVSHMEM's proxy thread, and keeps its
     * functions at exit from taking down what is open.
     */
    void globalExit() {
        call(globalExit, 0);
    }

    long align(long alignment, long numBytes) {
        return (long) call(align, alignment, numBytes);
    }

    /** Ends the process if it was not allocated or was freed before. */
    void free(long address) {
        call(free, address);
    }

    /** Reads past a table if there is no such PE. */
    long pointer(long address, int pe) {
        return (long) call(pointer, address, pe);
    }

    void barrierAll() {
        call(barrierAll);
    }

    void quietOnStream(long stream) {
        call(quietOnStream, stream);
    }

    /** Follows a null pointer if the PEs are out of range or no team is left. */
    int teamSplit(int parent, int firstPe, int stride, int numPes, MemorySegment team) {
        return (int) call(teamSplit, parent, firstPe, stride, numPes, MemorySegment.NULL, 0L, team);
    }

    void teamDestroy(int team) {
        call(teamDestroy, team);
    }

    int teamMyPe(int team) {
        return (int) call(teamMyPe, team);
    }

    int teamNumPes(int team) {
        return (int) call(teamNumPes, team);
    }

    int moduleInit(long module) {
        return (int) call(moduleInit, module);
    }

    int moduleFinalize(long module) {
        return (int) call(moduleFinalize, module);
    }
}
