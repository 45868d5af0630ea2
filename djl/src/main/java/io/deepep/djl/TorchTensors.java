package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;

/**
 * Converts arrays of DJL's PyTorch engine to {@link Tensor}s and back, over the same memory, on the
 * CPU and on GPUs.
 *
 * <p>libtorch has the types BF16 and FP8, but DJL does not. Such an array can compute ({@code
 * matMul}, {@code mul}, slices, {@code toType(FLOAT32)}), but its {@code getDataType()} is {@code
 * UNKNOWN}, and methods that use the type in Java (printing, {@code toFloatArray}, {@code
 * toType(BFLOAT16)}) fail or give wrong results. Convert it with {@link #cast}.
 *
 * <p>On a GPU, libtorch runs on its current stream, see {@link TorchStreams}; these methods do not
 * wait for it.
 */
public final class TorchTensors {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final Map<Float, NDArray> SCALARS = new ConcurrentHashMap<>();

    private TorchTensors() {}

    /**
     * A view of an array's memory. The tensor shares the ownership: it keeps the memory allocated
     * even if the array is closed, until a garbage collection finds the tensor unreachable. The
     * heap does not grow by such memory, so that may be late; see {@link #borrow}. {@code
     * NDArray.set} gives the array other memory; the tensor keeps the old memory.
     *
     * @param array of BF16, FP8 (E4M3), FLOAT32, INT32, INT64 or BOOLEAN, any strides
     * @throws IllegalArgumentException if the array has a different type, or is not of the PyTorch
     *     engine
     */
    public static Tensor tensorOf(NDArray array) {
        Tensor view = borrow(array);
        long shared = LibTorch.NEW_HANDLE.get(handleOf(array));
        if (view.device().isHost()) {
            MemorySegment memory =
                    view.segment().reinterpret(Arena.ofAuto(), _ -> LibTorch.delete(shared));
            return Tensor.strided(memory, view.dtype(), view.shape(), view.strides());
        }
        Object owner = new Object();
        CLEANER.register(owner, () -> LibTorch.delete(shared));
        return Tensor.onDevice(
                view.device(),
                view.address(),
                view.capacityBytes(),
                view.dtype(),
                view.shape(),
                view.strides(),
                owner);
    }

    /**
     * A view that leaves the memory to the array. It must not be used after the array is closed, or
     * has got other memory: that may crash the process.
     *
     * @param array as in {@link #tensorOf}
     */
    public static Tensor borrow(NDArray array) {
        long handle = handleOf(array);
        DType dtype = TorchTypes.dtypeOf((int) LibTorch.DTYPE.get(handle));
        long address = LibTorch.DATA_PTR.get(handle);
        long[] sizes = LibTorch.sizes(handle);
        long[] strides = LibTorch.strides(handle);
        long numBytes = extent(sizes, strides) * dtype.sizeBytes();
        if ((int) LibTorch.DEVICE_TYPE.get(handle) == LibTorch.CPU) {
            MemorySegment memory = MemorySegment.ofAddress(address).reinterpret(numBytes);
            return Tensor.strided(memory, dtype, sizes, strides);
        }
        Device device = Device.cuda((int) LibTorch.DEVICE_INDEX.get(handle));
        return Tensor.onDevice(device, address, numBytes, dtype, sizes, strides);
    }

    /**
     * An array over a tensor's memory. The array keeps the tensor reachable, but arrays that DJL
     * derives from it (slices, reshapes) do not: keep the array or the tensor reachable as long as
     * those are used. Memory of an arena, or of a {@link io.deepep.Buffer}, is there only until
     * that is closed: to use the array later may crash the process.
     *
     * @param manager the manager that closes the array; the memory stays allocated
     * @throws IllegalArgumentException if the manager is not of DJL's PyTorch engine, or the memory
     *     is freed already
     */
    public static NDArray arrayOf(NDManager manager, Tensor tensor) {
        if (tensor.device().isHost() && !tensor.segment().scope().isAlive()) {
            throw new IllegalArgumentException(
                    "the memory of %s is freed: its arena, or the buffer that it shows, is closed"
                            .formatted(tensor));
        }
        LibTorch.Kind kind =
                LibTorch.Kind.of(TorchTypes.torchType(tensor.dtype()), tensor.device());
        return new View(manager, tensor.address(), kind, tensor.shape(), tensor.strides(), tensor);
    }

    /**
     * The memory of a contiguous array as one of another type. It must not be used after the array
     * is closed.
     *
     * @param shape of as many bytes
     */
    public static NDArray viewAs(NDArray array, DType dtype, long... shape) {
        Tensor memory = borrow(array);
        LibTorch.Kind kind = LibTorch.Kind.of(TorchTypes.torchType(dtype), memory.device());
        long[] strides = Tensor.contiguousStrides(shape);
        if (!memory.isContiguous()
                || extent(shape, strides) * dtype.sizeBytes()
                        != memory.numElements() * memory.dtype().sizeBytes()) {
            throw new IllegalArgumentException(
                    "%s cannot be seen as %s %s; it must be contiguous, and have as many bytes"
                            .formatted(memory, dtype, Arrays.toString(shape)));
        }
        return new View(array.getManager(), memory.address(), kind, shape, strides, array);
    }

    /**
     * A FLOAT32 scalar on the CPU for operations with arrays on any device: {@code
     * x.mul(scalar(2))} instead of {@code x.mul(2)}. libtorch reads it when it enqueues the
     * operation, whereas DJL copies a number to the GPU each time and waits until it is there. Kept
     * for ever: for constants. Do not close it.
     */
    public static NDArray scalar(float value) {
        return SCALARS.computeIfAbsent(value, TorchTensors::newScalar);
    }

    private static NDArray newScalar(float value) {
        return NDManager.newBaseManager(ai.djl.Device.cpu(), "PyTorch").create(value);
    }

    /** A new contiguous array of any {@link DType} on the manager's device, not initialized. */
    public static NDArray empty(NDManager manager, DType dtype, long... shape) {
        return empty(manager, TorchTypes.torchType(dtype), shape);
    }

    private static NDArray empty(NDManager manager, int torchType, long... shape) {
        LibTorch.Kind kind =
                LibTorch.Kind.of(torchType, TorchDevices.deviceOf(manager.getDevice()));
        return new PtNDArray(
                torchManager(manager),
                LibTorch.empty(kind, shape, Tensor.contiguousStrides(shape)));
    }

    /**
     * Copies an array into another of the same shape and converts the type; values are rounded to
     * the nearest, ties to even. Runs on libtorch's current stream.
     */
    public static void cast(NDArray from, NDArray to) {
        if (!from.getShape().equals(to.getShape())) {
            throw new IllegalArgumentException(
                    "from has shape %s, but to has %s; they must be the same"
                            .formatted(from.getShape(), to.getShape()));
        }
        LibTorch.copy(handleOf(to), handleOf(from));
    }

    /** Whether the array has a type, also one that DJL has no name for. */
    static boolean hasType(NDArray array, DType dtype) {
        return typeOf(array) == TorchTypes.torchType(dtype);
    }

    static boolean haveSameType(NDArray a, NDArray b) {
        return typeOf(a) == typeOf(b);
    }

    /** As libtorch numbers it. */
    private static int typeOf(NDArray array) {
        return (int) LibTorch.DTYPE.get(handleOf(array));
    }

    /** Whether arrays of one shape have the same bytes in one piece, whatever these are. */
    static boolean sameBytes(NDArray a, NDArray b) {
        long first = handleOf(a);
        long second = handleOf(b);
        long[] contiguous = Tensor.contiguousStrides(LibTorch.sizes(first));
        return LibTorch.DTYPE.get(first) == LibTorch.DTYPE.get(second)
                && LibTorch.DTYPE.get(first) != LibTorch.FLOAT16
                && Arrays.equals(LibTorch.strides(first), contiguous)
                && Arrays.equals(LibTorch.strides(second), contiguous);
    }

    /** {@code x} in the type of another array: itself, or a copy attached to its manager. */
    static NDArray toTypeOf(NDArray other, NDArray x) {
        int type = typeOf(other);
        if (type == typeOf(x)) {
            return x;
        }
        NDArray typed = empty(x.getManager(), type, x.getShape().getShape());
        LibTorch.copy(handleOf(typed), handleOf(x));
        return typed;
    }

    /** Elements from the first to past the last one. */
    private static long extent(long[] sizes, long[] strides) {
        if (LongStream.of(sizes).anyMatch(size -> size == 0)) {
            return 0;
        }
        long last = 0;
        for (int d = 0; d < sizes.length; d++) {
            last += (sizes[d] - 1) * strides[d];
        }
        return last + 1;
    }

    static long handleOf(NDArray array) {
        if (array instanceof PtNDArray torch) {
            return torch.getHandle();
        }
        throw notTorch("array", array.getManager());
    }

    static PtNDManager torchManager(NDManager manager) {
        if (manager instanceof PtNDManager torch) {
            return torch;
        }
        throw notTorch("manager", manager);
    }

    private static IllegalArgumentException notTorch(String what, NDManager manager) {
        return new IllegalArgumentException(
                ("%s is of DJL's engine %s; only PyTorch shares its memory (NDManager.newBaseManager(device,"
                                + " \"PyTorch\"))")
                        .formatted(what, manager.getEngine().getEngineName()));
    }

    /** An array that keeps the memory's owner reachable. */
    private static final class View extends PtNDArray {
        @SuppressWarnings("unused") // held, not read
        private final Object memory;

        View(
                NDManager manager,
                long address,
                LibTorch.Kind kind,
                long[] shape,
                long[] strides,
                Object memory) {
            super(torchManager(manager), LibTorch.fromBlob(address, kind, shape, strides));
            this.memory = memory;
        }
    }

    /** An array over memory of any libtorch type, for files. */
    static NDArray view(NDManager manager, MemorySegment memory, int torchType, long[] shape) {
        LibTorch.Kind kind = LibTorch.Kind.of(torchType, Device.host());
        long[] strides = Tensor.contiguousStrides(shape);
        return new View(manager, memory.address(), kind, shape, strides, memory);
    }
}
