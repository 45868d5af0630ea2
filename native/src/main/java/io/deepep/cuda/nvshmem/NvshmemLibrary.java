package io.deepep.cuda.nvshmem;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The host library's functions. None of them protects itself: called out of order or with wrong
 * arguments, many end the process. {@link Nvshmem} sees to it that this cannot happen.
 */
final class NvshmemLibrary {
    /** {@code init_status} from which on PEs can communicate. */
    static final int STATUS_INITIALIZED = 2;

    /** Several PEs share a GPU, and there is no MPS that guarantees them their share: no teams. */
    static final int STATUS_LIMITED_SHARING = 3;

    static final int SUCCESS = 0;
    static final int OUT_OF_MEMORY = 2;

    private static final List<String> STATUS_NAMES =
            List.of(
                    "NVSHMEMX_SUCCESS",
                    "NVSHMEMX_ERROR_INVALID_VALUE",
                    "NVSHMEMX_ERROR_OUT_OF_MEMORY",
                    "NVSHMEMX_ERROR_NOT_SUPPORTED",
                    "NVSHMEMX_ERROR_SYMMETRY",
                    "NVSHMEMX_ERROR_GPU_NOT_SELECTED",
                    "NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED",
                    "NVSHMEMX_ERROR_INTERNAL");

    private static final int TEAM_WORLD = 0;
    private static final int TEAM_INVALID = -1;
    private static final int INIT_WITH_UNIQUE_ID = 1 << 3;

    private final Map<Function, MethodHandle> handles = new EnumMap<>(Function.class);

    /** What is called, with its result, null for none, and its parameters. */
    private enum Function {
        GET_VERSION("nvshmemx_vendor_get_version_info", null, ADDRESS, ADDRESS, ADDRESS),
        GET_UNIQUE_ID("nvshmemx_get_uniqueid", JAVA_INT, ADDRESS),
        SET_UNIQUE_ID_ARGS(
                "nvshmemx_set_attr_uniqueid_args", JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS),
        INIT_ATTR("nvshmemx_hostlib_init_attr", JAVA_INT, JAVA_INT, ADDRESS),
        INIT_STATUS("nvshmemx_init_status", JAVA_INT),
        FINALIZE("nvshmemx_hostlib_finalize", null),
        GLOBAL_EXIT("nvshmem_global_exit", null, JAVA_INT),
        ALIGN("nvshmem_align", JAVA_LONG, JAVA_LONG, JAVA_LONG),
        FREE("nvshmem_free", null, JAVA_LONG),
        POINTER("nvshmem_ptr", JAVA_LONG, JAVA_LONG, JAVA_INT),
        BARRIER_ALL("nvshmem_barrier_all", null),
        QUIET_ON_STREAM("nvshmemx_quiet_on_stream", null, JAVA_LONG),
        TEAM_SPLIT(
                "nvshmem_team_split_strided",
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                ADDRESS,
                JAVA_LONG,
                ADDRESS),
        TEAM_DESTROY("nvshmem_team_destroy", null, JAVA_INT),
        TEAM_MY_PE("nvshmem_team_my_pe", JAVA_INT, JAVA_INT),
        TEAM_NUM_PES("nvshmem_team_n_pes", JAVA_INT, JAVA_INT),
        MODULE_INIT("nvshmemx_cumodule_init", JAVA_INT, JAVA_LONG),
        MODULE_FINALIZE("nvshmemx_cumodule_finalize", JAVA_INT, JAVA_LONG);

        private final String symbol;

        @SuppressWarnings("ImmutableEnumChecker") // it is, but does not say so
        private final FunctionDescriptor descriptor;

        Function(String symbol, MemoryLayout result, MemoryLayout... parameters) {
            this.symbol = symbol;
            FunctionDescriptor nothing = FunctionDescriptor.ofVoid(parameters);
            this.descriptor = result == null ? nothing : nothing.changeReturnLayout(result);
        }
    }

    private NvshmemLibrary(NativeLibrary library) {
        for (Function function : Function.values()) {
            handles.put(function, library.bind(function.symbol, function.descriptor));
        }
    }

    private Object call(Function function, Object... arguments) {
        return NativeLibrary.call(handles.get(function), arguments);
    }

    /** Calls a function that returns a status. */
    private void check(Function function, String where, Object... arguments) {
        int status = (int) call(function, arguments);
        if (status != SUCCESS) {
            throw failure(function.symbol, status, where);
        }
    }

    static NativeCallException failure(String call, int status, String where) {
        return new NativeCallException(call, status, name(status), where, false);
    }

    static String name(int status) {
        return status >= 0 && status < STATUS_NAMES.size()
                ? STATUS_NAMES.get(status)
                : "NVSHMEMX_ERROR_" + status;
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
            call(Function.GET_VERSION, parts, parts.asSlice(4), parts.asSlice(8));
            return new NvshmemVersion(
                    parts.getAtIndex(JAVA_INT, 0),
                    parts.getAtIndex(JAVA_INT, 1),
                    parts.getAtIndex(JAVA_INT, 2));
        }
    }

    int getUniqueId(MemorySegment id) {
        return (int) call(Function.GET_UNIQUE_ID, id);
    }

    /**
     * Keeps pointers to both segments until it has returned.
     *
     * @return {@code init_status}: the call succeeds even where starting failed
     */
    int init(int pe, int numPes, MemorySegment id, MemorySegment attr, String where) {
        check(Function.SET_UNIQUE_ID_ARGS, where, pe, numPes, id, attr);
        check(Function.INIT_ATTR, where, INIT_WITH_UNIQUE_ID, attr);
        return initStatus();
    }

    int initStatus() {
        return (int) call(Function.INIT_STATUS);
    }

    /** Ends the process if the CUDA context is lost. */
    void shutDown() {
        call(Function.FINALIZE);
    }

    /**
     * With the bootstrap by unique id this ends nothing but NVSHMEM's proxy thread, and keeps its
     * functions at exit from taking down what is open.
     */
    void globalExit() {
        call(Function.GLOBAL_EXIT, 0);
    }

    long align(long alignment, long numBytes) {
        return (long) call(Function.ALIGN, alignment, numBytes);
    }

    /** Ends the process if it was not allocated or was freed before. */
    void free(long address) {
        call(Function.FREE, address);
    }

    /** Reads past a table if there is no such PE. */
    long pointer(long address, int pe) {
        return (long) call(Function.POINTER, address, pe);
    }

    void barrierAll() {
        call(Function.BARRIER_ALL);
    }

    void quietOnStream(long stream) {
        call(Function.QUIET_ON_STREAM, stream);
    }

    /**
     * A team of some PEs of the world. Follows a null pointer if they are out of range or no team
     * is left.
     */
    int teamSplit(int firstPe, int stride, int numPes, String where) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment team = arena.allocateFrom(JAVA_INT, TEAM_INVALID);
            check(
                    Function.TEAM_SPLIT,
                    where,
                    TEAM_WORLD,
                    firstPe,
                    stride,
                    numPes,
                    MemorySegment.NULL,
                    0L,
                    team);
            return team.get(JAVA_INT, 0);
        }
    }

    void teamDestroy(int team) {
        call(Function.TEAM_DESTROY, team);
    }

    /** -1 of a team that this PE is not in. */
    int teamMyPe(int team) {
        return (int) call(Function.TEAM_MY_PE, team);
    }

    int teamNumPes(int team) {
        return (int) call(Function.TEAM_NUM_PES, team);
    }

    void moduleInit(long module, String where) {
        check(Function.MODULE_INIT, where, module);
    }

    void moduleFinalize(long module) {
        check(Function.MODULE_FINALIZE, "a module", module);
    }
}
