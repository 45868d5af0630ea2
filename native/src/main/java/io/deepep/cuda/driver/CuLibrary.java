package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;

/**
 * The driver's shared library. Nothing here fails while classes initialise: where the library or
 * one of its functions is missing, the handle bound in its place throws when it is called, with
 * cause and cure.
 */
public final class CuLibrary {
    private static final System.Logger LOG = System.getLogger(CuLibrary.class.getName());
    private static final String FILE = "libcuda.so.1";
    private static final String MAX_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS";
    private static final String ENOUGH_CONNECTIONS = "32";
    private static final String CURE =
            "install the NVIDIA driver (in a container: run it with --gpus all and the NVIDIA"
                    + " container toolkit), or stay on the host (Device.host(), --backend host)";
    private static final MethodHandle THROW_UNAVAILABLE = throwUnavailableHandle();

    /** Why the library cannot be called, or null. */
    private static final DeepEpUnavailableException FAILURE;

    private static final SymbolLookup SYMBOLS;
    private static final boolean STARTED_BEFORE;

    static {
        SymbolLookup symbols = _ -> Optional.empty();
        DeepEpUnavailableException failure = null;
        try {
            // Before the driver's library is there, so that nothing can have read them yet.
            presetMaxConnections();
            symbols = SymbolLookup.libraryLookup(FILE, Arena.global());
        } catch (IllegalCallerException e) {
            failure = NativeLibrary.denied(e);
        } catch (IllegalArgumentException e) {
            failure = new DeepEpUnavailableException(FILE + " cannot be loaded", CURE, e);
        }
        SYMBOLS = symbols;
        FAILURE = failure;
        STARTED_BEFORE = failure == null && isStarted();
    }

    private static MethodHandle throwUnavailableHandle() {
        MethodType type = MethodType.methodType(int.class, String.class);
        try {
            return MethodHandles.lookup().findStatic(CuLibrary.class, "throwUnavailable", type);
        } catch (NoSuchMethodException | IllegalAccessException e) {
            throw new LinkageError("throwUnavailable", e);
        }
    }

    private CuLibrary() {}

    /** Why the library cannot be called; empty if it is loaded. */
    public static Optional<DeepEpUnavailableException> failure() {
        return Optional.ofNullable(FAILURE);
    }

    /**
     * Whether another library of this process had started the driver before this class was loaded.
     */
    public static boolean wasStartedBefore() {
        return STARTED_BEFORE;
    }

    /** Nothing can be asked of a driver before it has been started. */
    private static boolean isStarted() {
        MethodHandle getCount = bind("cuDeviceGetCount", new Linker.Option[0], ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            return (int) getCount.invokeExact(arena.allocate(JAVA_INT)) == CuError.SUCCESS;
        } catch (DeepEpUnavailableException noSuchFunction) {
            return false; // whoever needs it will say so
        } catch (Throwable failure) {
            throw CuCall.rethrow(failure);
        }
    }

    /** A handle that returns CUresult; where the function is missing, one that throws. */
    static MethodHandle bind(String function, Linker.Option[] options, MemoryLayout... parameters) {
        FunctionDescriptor descriptor = FunctionDescriptor.of(JAVA_INT, parameters);
        Optional<MemorySegment> symbol = SYMBOLS.find(function);
        if (symbol.isPresent()) {
            return Linker.nativeLinker().downcallHandle(symbol.get(), descriptor, options);
        }
        MethodHandle unavailable = MethodHandles.insertArguments(THROW_UNAVAILABLE, 0, function);
        return MethodHandles.dropArguments(
                unavailable, 0, descriptor.toMethodType().parameterList());
    }

    @SuppressWarnings("unused") // THROW_UNAVAILABLE
    private static int throwUnavailable(String function) {
        if (FAILURE != null) {
            throw new DeepEpUnavailableException(FAILURE.reason(), FAILURE.cure(), FAILURE);
        }
        throw new DeepEpUnavailableException(
                "the NVIDIA driver has no " + function, "install a newer driver");
    }

    /** Processes then share the queues of a GPU, and each has to ask for fewer. */
    private static boolean isUnderMps() {
        return System.getenv().keySet().stream().anyMatch(name -> name.startsWith("CUDA_MPS_"));
    }

    /**
     * Sets how many hardware queues the driver takes when it starts; {@link System#getenv} does not
     * show it. What the user has set stays.
     */
    private static void presetMaxConnections() {
        String given = System.getenv(MAX_CONNECTIONS);
        if (given == null) {
            NativeEnvironment.set(MAX_CONNECTIONS, ENOUGH_CONNECTIONS);
        } else if (!given.equals(ENOUGH_CONNECTIONS) && !isUnderMps()) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "{0}={1} is kept as given, but {2} is recommended: kernels that wait can block one another on a"
                            + " shared GPU",
                    MAX_CONNECTIONS,
                    given,
                    ENOUGH_CONNECTIONS);
        }
    }
}
