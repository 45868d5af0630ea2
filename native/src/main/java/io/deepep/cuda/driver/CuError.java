package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Map;

/** The driver's status codes: names, what they mean, and which of them cost the context. */
public final class CuError {
    public static final int SUCCESS = 0;
    public static final int OUT_OF_MEMORY = 2;
    public static final int STUB_LIBRARY = 34;
    public static final int NO_DEVICE = 100;
    static final int NO_BINARY_FOR_GPU = 209;
    static final int UNSUPPORTED_PTX_VERSION = 222;
    public static final int NOT_READY = 600;
    public static final int PEER_ACCESS_ALREADY_ENABLED = 704;
    public static final int SYSTEM_NOT_READY = 802;
    public static final int SYSTEM_DRIVER_MISMATCH = 803;

    /** Names without a driver to ask: what start-up can return, and what costs the context. */
    private static final Map<Integer, String> NAMES =
            Map.ofEntries(
                    Map.entry(SUCCESS, "CUDA_SUCCESS"),
                    Map.entry(1, "CUDA_ERROR_INVALID_VALUE"),
                    Map.entry(OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
                    Map.entry(3, "CUDA_ERROR_NOT_INITIALIZED"),
                    Map.entry(STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"),
                    Map.entry(NO_DEVICE, "CUDA_ERROR_NO_DEVICE"),
                    Map.entry(201, "CUDA_ERROR_INVALID_CONTEXT"),
                    Map.entry(NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
                    Map.entry(214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
                    Map.entry(220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
                    Map.entry(UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
                    Map.entry(226, "CUDA_ERROR_CONTAINED"),
                    Map.entry(NOT_READY, "CUDA_ERROR_NOT_READY"),
                    Map.entry(700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
                    Map.entry(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
                    Map.entry(702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
                    Map.entry(
                            PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
                    Map.entry(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
                    Map.entry(710, "CUDA_ERROR_ASSERT"),
                    Map.entry(714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
                    Map.entry(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
                    Map.entry(716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
                    Map.entry(717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
                    Map.entry(718, "CUDA_ERROR_INVALID_PC"),
                    Map.entry(719, "CUDA_ERROR_LAUNCH_FAILED"),
                    Map.entry(721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
                    Map.entry(SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"),
                    Map.entry(SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
                    Map.entry(810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
                    Map.entry(911, "CUDA_ERROR_EXTERNAL_DEVICE"),
                    Map.entry(999, "CUDA_ERROR_UNKNOWN"));

    // Handles of their own: a failing CuCall comes here.
    private static final MethodHandle GET_ERROR_NAME =
            CuLibrary.bind("cuGetErrorName", new Linker.Option[0], JAVA_INT, ADDRESS);
    private static final MethodHandle GET_ERROR_STRING =
            CuLibrary.bind("cuGetErrorString", new Linker.Option[0], JAVA_INT, ADDRESS);
    private static final MethodHandle CTX_GET_DEVICE =
            CuLibrary.bind("cuCtxGetDevice", new Linker.Option[0], ADDRESS);

    private CuError() {}

    /** Whether the context is lost with this status: every later call on it fails the same way. */
    static boolean isFatal(int code) {
        return switch (code) {
            case 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911 ->
                    true;
            default -> false;
        };
    }

    /** The name in the driver's header. */
    public static String name(int code) {
        String name = NAMES.get(code);
        if (name != null) {
            return name;
        }
        String asked = ask(GET_ERROR_NAME, code);
        return asked.isEmpty() ? "CUDA_ERROR_" + code : asked;
    }

    /** What a failed call becomes, with the device that is current on this thread. */
    static RuntimeException failure(String call, int code) {
        return failure(call, code, currentDevice());
    }

    static RuntimeException failure(String call, int code, String where) {
        if (code == NO_BINARY_FOR_GPU || code == UNSUPPORTED_PTX_VERSION) {
            return new DeepEpUnavailableException(
                    "%s found no code for %s: %s (%s)".formatted(call, where, describe(code), code),
                    "build with an nvcc that targets this GPU and is not newer than the driver's"
                            + " CUDA version, or install a newer driver");
        }
        return new NativeCallException(call, code, describe(code), where, isFatal(code));
    }

    private static String describe(int code) {
        String text = ask(GET_ERROR_STRING, code);
        return text.isEmpty() ? name(code) : name(code) + ", " + text;
    }

    /** Empty without a driver or where it does not know the code: reporting must not fail. */
    private static String ask(MethodHandle question, int code) {
        if (CuLibrary.failure().isPresent()) {
            return "";
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ADDRESS);
            int status = (int) NativeLibrary.call(question, code, out);
            MemorySegment text = out.get(ADDRESS, 0);
            boolean known = status == SUCCESS && text.address() != 0;
            return known ? text.reinterpret(Integer.MAX_VALUE).getString(0) : "";
        }
    }

    private static String currentDevice() {
        if (CuLibrary.failure().isPresent()) {
            return "no device";
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            int status = (int) NativeLibrary.call(CTX_GET_DEVICE, out);
            return status == SUCCESS ? "cuda:" + out.get(JAVA_INT, 0) : "no current device";
        }
    }
}
