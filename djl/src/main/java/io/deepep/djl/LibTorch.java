package io.deepep.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Device;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;

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

    static final Function DATA_PTR = getter("aoti_torch_get_data_ptr");
    static final Function DTYPE = getter("aoti_torch_get_dtype");
    static final Function DEVICE_TYPE = getter("aoti_torch_get_device_type");
    static final Function DEVICE_INDEX = getter("aoti_torch_get_device_index");

    /** Another handle of the same tensor, which keeps its memory until it is {@link #delete}d. */
    static final Function NEW_HANDLE = getter("aoti_torch_new_tensor_handle");

    private static final Function DIM = getter("aoti_torch_get_dim");
    private static final Function SIZES = getter("aoti_torch_get_sizes");
    private static final Function STRIDES = getter("aoti_torch_get_strides");
    private static final Function DELETE =
            Function.of(LIBRARY, "aoti_torch_delete_tensor_object", JAVA_LONG);
    private static final Function COPY =
            Function.of(LIBRARY, "aoti_torch_copy_", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final Function EMPTY =
            Function.of(
                    LIBRARY,
                    "aoti_torch_empty_strided",
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    ADDRESS);
    private static final Function FROM_BLOB =
            Function.of(
                    LIBRARY,
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

    private static volatile boolean isCudaThere;

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

    /** A function that writes one property of a tensor: a number, or the address of several. */
    private static Function getter(String name) {
        return Function.of(LIBRARY, name, JAVA_LONG, ADDRESS);
    }

    private static int constant(String name) {
        try {
            return (int) bind(LIBRARY, name).invokeExact();
        } catch (Throwable t) {
            throw rethrow(t);
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

    /** A function that returns 0 if it succeeds; {@code handle} takes its arguments as an array. */
    record Function(String name, MethodHandle handle) {
        static Function of(SymbolLookup library, String name, MemoryLayout... parameters) {
            MethodHandle function = bind(library, name, parameters);
            return new Function(name, function.asSpreader(Object[].class, parameters.length));
        }

        void call(Object... arguments) {
            int status;
            try {
                status = (int) handle.invokeExact(arguments);
            } catch (Throwable t) {
                throw rethrow(t);
            }
            if (status != 0) {
                throw new NativeCallException(
                        name, status, "the reason is on stderr", "libtorch", false);
            }
        }

        /** The number or address that the function writes where its last argument points. */
        long get(Object... arguments) {
            try (Arena arena = Arena.ofConfined()) {
                // Smaller results leave the upper bytes zero.
                MemorySegment out = arena.allocate(JAVA_LONG);
                Object[] all = Arrays.copyOf(arguments, arguments.length + 1);
                all[arguments.length] = out;
                call(all);
                return out.get(JAVA_LONG, 0);
            }
        }
    }

    static long[] sizes(long tensor) {
        return perDimension(SIZES, tensor);
    }

    static long[] strides(long tensor) {
        return perDimension(STRIDES, tensor);
    }

    private static long[] perDimension(Function address, long tensor) {
        return MemorySegment.ofAddress(address.get(tensor))
                .reinterpret(DIM.get(tensor) * Long.BYTES)
                .toArray(JAVA_LONG);
    }

    /** Gives up a handle. */
    static void delete(long tensor) {
        DELETE.call(tensor);
    }

    /** Copies elements, converting and broadcasting, on libtorch's current stream. */
    static void copy(long to, long from) {
        COPY.call(to, from, 0);
    }

    /** The same; the host goes on at once if memory of the host is pinned. */
    static void copyNonBlocking(long to, long from) {
        COPY.call(to, from, 1);
    }

    /** Type and device of a tensor to be made. */
    record Kind(int dtype, int deviceType, int deviceIndex) {
        static Kind of(int dtype, Device device) {
            return device.isHost()
                    ? new Kind(dtype, CPU, 0)
                    : new Kind(dtype, CUDA, device.index());
        }
    }

    /** A new tensor of libtorch's own memory, not initialised. */
    static long empty(Kind kind, long[] sizes, long[] strides) {
        try (Arena arena = Arena.ofConfined()) {
            return EMPTY.get(
                    sizes.length,
                    arena.allocateFrom(JAVA_LONG, sizes),
                    arena.allocateFrom(JAVA_LONG, strides),
                    kind.dtype,
                    kind.deviceType,
                    kind.deviceIndex);
        }
    }

    /** A new tensor over memory that stays somebody else's. */
    static long fromBlob(long address, Kind kind, long[] sizes, long[] strides) {
        try (Arena arena = Arena.ofConfined()) {
            return FROM_BLOB.get(
                    address,
                    sizes.length,
                    arena.allocateFrom(JAVA_LONG, sizes),
                    arena.allocateFrom(JAVA_LONG, strides),
                    0,
                    kind.dtype,
                    kind.deviceType,
                    kind.deviceIndex);
        }
    }

    /** Whether the libtorch that DJL has loaded computes on GPUs. */
    static boolean hasCuda() {
        try {
            requireCuda();
            return true;
        } catch (DeepEpUnavailableException forCpus) {
            return false;
        }
    }

    /** Before {@link CudaPart}, which would stay unusable if it found none. */
    private static void requireCuda() {
        if (!isCudaThere) {
            loadCuda();
            isCudaThere = true;
        }
    }

    private static SymbolLookup loadCuda() {
        return load("torch_cuda", "use DJL with a libtorch for CUDA");
    }

    /** The {@code cudaStream_t} that libtorch's operations on a GPU run on in this thread. */
    static long currentCudaStream(int device) {
        requireCuda();
        return CudaPart.CURRENT_STREAM.get(device);
    }

    /** Makes a GPU this thread's, until {@link #deleteCudaGuard}. */
    static long createCudaGuard(int device) {
        return CudaPart.CREATE_GUARD.get(device);
    }

    /** Makes that GPU this thread's which was before. */
    static void deleteCudaGuard(long guard) {
        CudaPart.DELETE_GUARD.call(guard);
    }

    /** Makes a stream of a GPU this thread's current one, until {@link #deleteStreamGuard}. */
    static long createStreamGuard(long stream, int device) {
        return CudaPart.CREATE_STREAM_GUARD.get(stream, device);
    }

    /** Makes that stream and that GPU this thread's which were before. */
    static void deleteStreamGuard(long guard) {
        CudaPart.DELETE_STREAM_GUARD.call(guard);
    }

    /** What only a libtorch with CUDA has. */
    static final class CudaPart {
        static final SymbolLookup CUDA = loadCuda();
        static final Function CURRENT_STREAM =
                Function.of(CUDA, "aoti_torch_get_current_cuda_stream", JAVA_INT, ADDRESS);
        static final Function CREATE_GUARD =
                Function.of(CUDA, "aoti_torch_create_cuda_guard", JAVA_INT, ADDRESS);
        static final Function DELETE_GUARD =
                Function.of(CUDA, "aoti_torch_delete_cuda_guard", JAVA_LONG);
        static final Function CREATE_STREAM_GUARD =
                Function.of(
                        CUDA, "aoti_torch_create_cuda_stream_guard", JAVA_LONG, JAVA_INT, ADDRESS);
        static final Function DELETE_STREAM_GUARD =
                Function.of(CUDA, "aoti_torch_delete_cuda_stream_guard", JAVA_LONG);

        private CudaPart() {}
    }
}
