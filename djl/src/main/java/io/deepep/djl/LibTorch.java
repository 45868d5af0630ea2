package io.deepep.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The C functions of libtorch that this package needs, of the libtorch that DJL has loaded. A
 * tensor's handle is the address of an {@code at::Tensor}, as DJL's {@code PtNDArray} has it.
 *
 * <p>A call that fails prints libtorch's reason on stderr.
 */
final class LibTorch {
    private static final SymbolLookup LIBRARY =
            load(
                    "torch_cpu",
                    "use DJL's PyTorch engine (ai.djl.pytorch:pytorch-engine), and make an"
                            + " NDManager first");

    static final int CPU = constant("aoti_torch_device_type_cpu");
    static final int CUDA = constant("aoti_torch_device_type_cuda");
    static final int BFLOAT16 = constant("aoti_torch_dtype_bfloat16");
    static final int FLOAT16 = constant("aoti_torch_dtype_float16");
    static final int FLOAT32 = constant("aoti_torch_dtype_float32");
    static final int FLOAT8_E4M3 = constant("aoti_torch_dtype_float8_e4m3fn");
    static final int UINT8 = constant("aoti_torch_dtype_uint8");
    static final int INT32 = constant("aoti_torch_dtype_int32");
    static final int INT64 = constant("aoti_torch_dtype_int64");
    static final int BOOL = constant("aoti_torch_dtype_bool");

    static final Getter DATA_PTR = Getter.of("aoti_torch_get_data_ptr");
    static final Getter DTYPE = Getter.of("aoti_torch_get_dtype");
    static final Getter DEVICE_TYPE = Getter.of("aoti_torch_get_device_type");
    static final Getter DEVICE_INDEX = Getter.of("aoti_torch_get_device_index");
    static final Getter DIM = Getter.of("aoti_torch_get_dim");

    /** Another handle of the same tensor, which keeps its memory until it is {@link #delete}d. */
    static final Getter NEW_HANDLE = Getter.of("aoti_torch_new_tensor_handle");

    private static final Getter SIZES = Getter.of("aoti_torch_get_sizes");
    private static final Getter STRIDES = Getter.of("aoti_torch_get_strides");
    private static final MethodHandle DELETE = bind("aoti_torch_delete_tensor_object", JAVA_LONG);
    private static final MethodHandle COPY =
            bind("aoti_torch_copy_", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final MethodHandle EMPTY =
            bind(
                    "aoti_torch_empty_strided",
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    ADDRESS);
    private static final MethodHandle FROM_BLOB =
            bind(
                    "aoti_torch_create_tensor_from_blob",
                    JAVA_LONG,
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    ADDRESS);

    private static final MethodHandle CALL_DISPATCHER =
            bind("aoti_torch_call_dispatcher", ADDRESS, ADDRESS, ADDRESS);

    private LibTorch() {}

    /** A library that DJL has loaded is found by its bare name. */
    private static SymbolLookup load(String name, String cure) {
        String file = System.mapLibraryName(name);
        try {
            return SymbolLookup.libraryLookup(file, Arena.global());
        } catch (IllegalArgumentException missing) {
            throw new DeepEpUnavailableException(file + " is not loaded", cure, missing);
        }
    }

    private static MethodHandle bind(String name, MemoryLayout... parameters) {
        return bind(LIBRARY, name, parameters);
    }

    private static MethodHandle bind(
            SymbolLookup library, String name, MemoryLayout... parameters) {
        MemorySegment function =
                library.find(name)
                        .orElseThrow(
                                () ->
                                        new DeepEpUnavailableException(
                                                "libtorch has no function " + name,
                                                "use the libtorch of the DJL version that docs/guides/engines.md"
                                                        + " names"));
        return Linker.nativeLinker()
                .downcallHandle(function, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    private static int constant(String name) {
        try {
            return (int) bind(name).invokeExact();
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    private static void check(String name, int status) {
        if (status != 0) {
            throw new NativeCallException(
                    name, status, "the reason is on stderr", "libtorch", false);
        }
    }

    static RuntimeException rethrow(Throwable t) {
        if (t instanceof RuntimeException e) {
            throw e;
        }
        if (t instanceof Error e) {
            throw e;
        }
        throw new AssertionError("a downcall threw a checked exception", t);
    }

    /** A function that writes one property of a tensor: a number, or the address of several. */
    record Getter(String name, MethodHandle handle) {
        static Getter of(String name) {
            return new Getter(name, bind(name, JAVA_LONG, ADDRESS));
        }

        long get(long tensor) {
            try (Arena arena = Arena.ofConfined()) {
                // Smaller results leave the upper bytes zero.
                MemorySegment out = arena.allocate(JAVA_LONG);
                check(name, (int) handle.invokeExact(tensor, out));
                return out.get(JAVA_LONG, 0);
            } catch (Throwable t) {
                throw rethrow(t);
            }
        }

        long[] getAll(long tensor, int count) {
            return MemorySegment.ofAddress(get(tensor))
                    .reinterpret((long) count * Long.BYTES)
                    .toArray(JAVA_LONG);
        }
    }

    static long[] sizes(long tensor) {
        return SIZES.getAll(tensor, (int) DIM.get(tensor));
    }

    static long[] strides(long tensor) {
        return STRIDES.getAll(tensor, (int) DIM.get(tensor));
    }

    /** Gives up a handle. */
    static void delete(long tensor) {
        try {
            check("aoti_torch_delete_tensor_object", (int) DELETE.invokeExact(tensor));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** Copies elements, converting and broadcasting, on libtorch's current stream. */
    static void copy(long to, long from) {
        copy(to, from, false);
    }

    /** The same; the host goes on at once if memory of the host is pinned. */
    static void copy(long to, long from, boolean nonBlocking) {
        try {
            check("aoti_torch_copy_", (int) COPY.invokeExact(to, from, nonBlocking ? 1 : 0));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** Runs an operator on a stack of arguments, where its results are afterwards. */
    static void callDispatcher(String operator, String overload, MemorySegment stack) {
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            CALL_DISPATCHER.invokeExact(
                                    arena.allocateFrom(operator),
                                    arena.allocateFrom(overload),
                                    stack);
            check(operator, status);
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** Type and device of a tensor to be made. */
    record Kind(int dtype, int deviceType, int deviceIndex) {}

    /** A new tensor of libtorch's own memory, not initialised. */
    static long empty(Kind kind, long[] sizes, long[] strides) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            int status =
                    (int)
                            EMPTY.invokeExact(
                                    (long) sizes.length,
                                    arena.allocateFrom(JAVA_LONG, sizes),
                                    arena.allocateFrom(JAVA_LONG, strides),
                                    kind.dtype,
                                    kind.deviceType,
                                    kind.deviceIndex,
                                    out);
            check("aoti_torch_empty_strided", status);
            return out.get(JAVA_LONG, 0);
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** A new tensor over memory that stays somebody else's. */
    static long fromBlob(long address, Kind kind, long[] sizes, long[] strides) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            int status =
                    (int)
                            FROM_BLOB.invokeExact(
                                    address,
                                    (long) sizes.length,
                                    arena.allocateFrom(JAVA_LONG, sizes),
                                    arena.allocateFrom(JAVA_LONG, strides),
                                    0L,
                                    kind.dtype,
                                    kind.deviceType,
                                    kind.deviceIndex,
                                    out);
            check("aoti_torch_create_tensor_from_blob", status);
            return out.get(JAVA_LONG, 0);
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** Whether the libtorch that DJL has loaded computes on GPUs. */
    static boolean hasCuda() {
        try {
            loadCuda();
            return true;
        } catch (DeepEpUnavailableException forCpus) {
            return false;
        }
    }

    private static SymbolLookup loadCuda() {
        return load("torch_cuda", "use DJL with a libtorch for CUDA");
    }

    /** The {@code cudaStream_t} that libtorch's operations on a GPU run on in this thread. */
    static long currentCudaStream(int device) {
        return CudaPart.get("aoti_torch_get_current_cuda_stream", CudaPart.CURRENT_STREAM, device);
    }

    /** Makes a GPU this thread's, until {@link #deleteCudaGuard}. */
    static long createCudaGuard(int device) {
        return CudaPart.get("aoti_torch_create_cuda_guard", CudaPart.CREATE_GUARD, device);
    }

    /** Makes that GPU this thread's which was before. */
    static void deleteCudaGuard(long guard) {
        try {
            check("aoti_torch_delete_cuda_guard", (int) CudaPart.DELETE_GUARD.invokeExact(guard));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    /** What only a libtorch with CUDA has. */
    private static final class CudaPart {
        private static final SymbolLookup CUDA = loadCuda();
        private static final MethodHandle CURRENT_STREAM =
                bind(CUDA, "aoti_torch_get_current_cuda_stream", JAVA_INT, ADDRESS);
        private static final MethodHandle CREATE_GUARD =
                bind(CUDA, "aoti_torch_create_cuda_guard", JAVA_INT, ADDRESS);
        private static final MethodHandle DELETE_GUARD =
                bind(CUDA, "aoti_torch_delete_cuda_guard", JAVA_LONG);

        private CudaPart() {}

        /** What a function of a GPU writes. */
        static long get(String name, MethodHandle function, int device) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(JAVA_LONG);
                check(name, (int) function.invokeExact(device, out));
                return out.get(JAVA_LONG, 0);
            } catch (Throwable t) {
                throw rethrow(t);
            }
        }
    }
}
