package io.deepep;

import io.deepep.spi.CudaProvider;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Objects;

/**
 * A view of memory with an element type, a shape and strides (in elements). A tensor does not own
 * its memory: whoever allocated the memory decides when it is freed.
 *
 * <p>On the host, the memory is a native {@link MemorySegment}, with its checks of bounds and
 * lifetime; on a GPU, it is an address that only kernels can access. Tensors are immutable and
 * thread-safe; access to the elements is not synchronized.
 *
 * <p>Asynchronous calls on the host access tensors on a thread of the buffer, so their memory must
 * come from an arena that any thread may use: {@link Arena#ofShared}, {@link Arena#ofAuto} or
 * {@link Arena#global}.
 */
public final class Tensor {
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final MemorySegment segment;
    private final Device device;
    private final DType dtype;
    private final long[] shape;
    private final long[] strides;
    private final long numElements;
    private final Object owner;

    private Tensor(
            MemorySegment segment,
            Device device,
            DType dtype,
            long[] shape,
            long[] strides,
            Object owner) {
        this.owner = owner;
        this.segment = segment;
        this.device = device;
        this.dtype = dtype;
        this.shape = shape;
        this.strides = strides;
        this.numElements = TensorShapes.numElements(shape);
        TensorShapes.checkBounds(segment.byteSize(), dtype, shape, strides);
    }

    /**
     * A contiguous (row-major) view of host memory that starts at the beginning of {@code segment}.
     *
     * @throws IllegalArgumentException if the segment is on the Java heap, or too small
     */
    public static Tensor of(MemorySegment segment, DType dtype, long... shape) {
        return strided(segment, dtype, shape, contiguousStrides(shape));
    }

    /**
     * A view of host memory with the given strides, which starts at the beginning of {@code
     * segment}.
     *
     * @param strides in elements, not negative; 0 repeats elements
     * @throws IllegalArgumentException if the segment is on the Java heap, or too small
     */
    public static Tensor strided(MemorySegment segment, DType dtype, long[] shape, long[] strides) {
        Objects.requireNonNull(segment, "segment");
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "segment %s is on the Java heap; a tensor needs off-heap memory, as from an Arena"
                            .formatted(segment));
        }
        return new Tensor(
                segment,
                Device.host(),
                Objects.requireNonNull(dtype, "dtype"),
                shape.clone(),
                strides.clone(),
                null);
    }

    /**
     * A view of GPU memory, which the caller keeps allocated.
     *
     * @param device the GPU
     * @param address device address of the first element
     * @param numBytes bytes from {@code address} that the view may use
     * @param strides in elements, not negative; 0 repeats elements
     * @throws IllegalArgumentException if {@code device} is the host, or the view exceeds {@code
     *     numBytes}
     */
    public static Tensor onDevice(
            Device device, long address, long numBytes, DType dtype, long[] shape, long[] strides) {
        return onDevice(device, address, numBytes, dtype, shape, strides, null);
    }

    /**
     * A view of GPU memory that keeps the owner of the memory reachable.
     *
     * @param device the GPU
     * @param address device address of the first element
     * @param numBytes bytes from {@code address} that the view may use
     * @param strides in elements, not negative; 0 repeats elements
     * @param owner an object that frees the memory when it is garbage collected; the tensor and its
     *     slices keep it reachable. May be null
     * @throws IllegalArgumentException if {@code device} is the host, or the view exceeds {@code
     *     numBytes}
     */
    public static Tensor onDevice(
            Device device,
            long address,
            long numBytes,
            DType dtype,
            long[] shape,
            long[] strides,
            Object owner) {
        if (device.isHost()) {
            throw new IllegalArgumentException(
                    "device=host is not a GPU; for host memory use Tensor.of with a MemorySegment");
        }
        return new Tensor(
                deviceSegment(address, numBytes),
                device,
                dtype,
                shape.clone(),
                strides.clone(),
                owner);
    }

    /**
     * Device memory as a segment, so that slicing is bounds-checked as on the host. {@link
     * #segment} never returns it, because reading it from Java would crash the process.
     */
    @SuppressWarnings("restricted")
    private static MemorySegment deviceSegment(long address, long numBytes) {
        return MemorySegment.ofAddress(address).reinterpret(numBytes);
    }

    /**
     * A contiguous view of GPU memory that the CUDA driver knows. The driver tells which GPU the
     * memory is on and where the allocation ends; the view must not extend beyond it.
     *
     * @param address device address of the first element, anywhere in an allocation of {@code
     *     cuMemAlloc}, {@code cudaMalloc} or their pools
     * @param owner as in {@link #onDevice(Device, long, long, DType, long[], long[], Object)}; may
     *     be null
     * @throws IllegalArgumentException if there is no GPU memory at {@code address}, or too little
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used
     */
    public static Tensor cuda(long address, Object owner, DType dtype, long... shape) {
        CudaProvider.Memory memory =
                CudaProvider.load()
                        .memoryAt(address)
                        .orElseThrow(
                                () ->
                                        new IllegalArgumentException(
                                                ("address=0x%s is not in GPU memory that the CUDA driver knows;"
                                                                + " for other memory use Tensor.onDevice, which takes its"
                                                                + " device and size")
                                                        .formatted(Long.toHexString(address))));
        return onDevice(
                memory.device(),
                address,
                memory.base() + memory.numBytes() - address,
                dtype,
                shape,
                contiguousStrides(shape),
                owner);
    }

    /**
     * Allocates a contiguous, zeroed host tensor in {@code arena}, which frees its memory. The
     * first element is at a multiple of 128 bytes.
     */
    public static Tensor allocate(Arena arena, DType dtype, long... shape) {
        long numBytes = Math.multiplyExact(TensorShapes.numElements(shape), dtype.sizeBytes());
        return of(arena.allocate(Math.max(numBytes, 1), 128), dtype, shape);
    }

    /**
     * The strides of a contiguous (row-major) tensor, in elements.
     *
     * @throws IllegalArgumentException if a size is negative, or no memory can hold the elements
     */
    public static long[] contiguousStrides(long... shape) {
        TensorShapes.numElements(shape); // refuses a shape whose strides would overflow
        long[] strides = new long[shape.length];
        long next = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            strides[d] = next;
            next *= Math.max(shape[d], 1);
        }
        return strides;
    }

    /** Element type. */
    public DType dtype() {
        return dtype;
    }

    /** The device that the memory is on. */
    public Device device() {
        return device;
    }

    /** Number of dimensions. */
    public int rank() {
        return shape.length;
    }

    /** Extent of dimension {@code dim}. */
    public long size(int dim) {
        return shape[requireDim(dim)];
    }

    /** Distance, in elements, between neighbours along dimension {@code dim}. */
    public long stride(int dim) {
        return strides[requireDim(dim)];
    }

    private int requireDim(int dim) {
        if (dim < 0 || dim >= shape.length) {
            throw new IndexOutOfBoundsException("dim=%s is not one of %s".formatted(dim, this));
        }
        return dim;
    }

    /** A copy of the shape. */
    public long[] shape() {
        return shape.clone();
    }

    /** A copy of the strides, in elements. */
    public long[] strides() {
        return strides.clone();
    }

    /** Number of elements: the product of the shape. */
    public long numElements() {
        return numElements;
    }

    /** Whether the elements lie in row-major order without gaps. */
    public boolean isContiguous() {
        return TensorShapes.isContiguous(shape, strides);
    }

    /** Address of the first element. */
    public long address() {
        return segment.address();
    }

    /**
     * The memory of a host tensor, starting at its first element.
     *
     * @throws IllegalStateException if this tensor is on a GPU
     */
    public MemorySegment segment() {
        if (!device.isHost()) {
            throw new IllegalStateException(
                    "the tensor is on " + device + "; copy it to the host to read it");
        }
        return segment;
    }

    /** The object that frees the memory when it is garbage collected; null if there is none. */
    public Object owner() {
        return owner;
    }

    /** Bytes from the first element to the end of the memory that this tensor may use. */
    public long capacityBytes() {
        return segment.byteSize();
    }

    /** Bytes from the first element to the end of the last, gaps included. */
    public long extentBytes() {
        return TensorShapes.extentBytes(dtype, shape, strides);
    }

    /** Offset in bytes of the element at {@code index} from the first element. */
    public long offsetBytes(long... index) {
        if (index.length != shape.length) {
            throw new IllegalArgumentException(
                    "index %s has %s dimensions, but the tensor is %s"
                            .formatted(Arrays.toString(index), index.length, this));
        }
        long offset = 0;
        for (int d = 0; d < index.length; d++) {
            offset += requireIndex(index[d], d) * strides[d];
        }
        return offset * dtype.sizeBytes();
    }

    private long requireIndex(long index, int dim) {
        if (index < 0 || index >= shape[dim]) {
            throw new IndexOutOfBoundsException(
                    "index %s is not in dimension %s of %s".formatted(index, dim, this));
        }
        return index;
    }

    /** A view of the range {@code [from, from + length)} of dimension {@code dim}. */
    public Tensor slice(int dim, long from, long length) {
        if (from < 0 || length < 0 || from > size(dim) - length) {
            throw new IndexOutOfBoundsException(
                    "[%s, %s + %s) is not in dimension %s of %s"
                            .formatted(from, from, length, dim, this));
        }
        long[] newShape = shape.clone();
        newShape[dim] = length;
        return view(numElements == 0 || length == 0 ? 0 : from * strides[dim], newShape, strides);
    }

    /** A view of index {@code at} of dimension {@code dim}, with one dimension less. */
    public Tensor select(int dim, long at) {
        requireIndex(at, requireDim(dim));
        return view(
                numElements == 0 ? 0 : at * strides[dim],
                TensorShapes.without(shape, dim),
                TensorShapes.without(strides, dim));
    }

    private Tensor view(long firstElement, long[] newShape, long[] newStrides) {
        return new Tensor(
                segment.asSlice(firstElement * dtype.sizeBytes()),
                device,
                dtype,
                newShape,
                newStrides.clone(),
                owner);
    }

    /** The memory of a host tensor, for a look at its elements. */
    private MemorySegment elements() {
        if (!segment().scope().isAlive()) {
            throw new IllegalStateException(
                    "the memory of %s is freed: its arena, or the buffer that it shows, is closed"
                            .formatted(this));
        }
        return segment;
    }

    /** An element of a host tensor as a {@code float}; integers are converted. */
    public float getFloat(long... index) {
        long at = offsetBytes(index);
        return switch (dtype) {
            case BF16 -> Bf16.toFloat(elements().get(SHORT, at));
            case FP8_E4M3 -> Fp8E4m3.toFloat(elements().get(ValueLayout.JAVA_BYTE, at));
            case F32 -> elements().get(FLOAT, at);
            case I32, I64, BOOL -> getLong(index);
        };
    }

    /**
     * Stores a {@code float} into a host tensor, rounded to the nearest value of its type, ties to
     * even. I32 and I64 truncate it and clamp it to their range; BOOL takes 0 and 1.
     */
    public void setFloat(float value, long... index) {
        long at = offsetBytes(index);
        switch (dtype) {
            case BF16 -> elements().set(SHORT, at, Bf16.fromFloat(value));
            case FP8_E4M3 -> elements().set(ValueLayout.JAVA_BYTE, at, Fp8E4m3.fromFloat(value));
            case F32 -> elements().set(FLOAT, at, value);
            case I32, I64, BOOL -> setLong(dtype == DType.I32 ? (int) value : (long) value, index);
        }
    }

    /**
     * A copy of a row of a host tensor: the elements along its last dimension, as {@link #getFloat}
     * returns them.
     *
     * @param row the index in all dimensions but the last
     * @throws IllegalArgumentException if the tensor has no dimension, or longer rows than arrays
     */
    public float[] getFloats(long... row) {
        float[] values = new float[rowLength()];
        long[] index = Arrays.copyOf(row, row.length + 1);
        for (int i = 0; i < values.length; i++) {
            index[row.length] = i;
            values[i] = getFloat(index);
        }
        return values;
    }

    /**
     * Stores a row into a host tensor: the elements along its last dimension, as {@link #setFloat}
     * stores them.
     *
     * @param values as many as the last dimension has elements
     * @param row the index in all dimensions but the last
     * @throws IllegalArgumentException if there are more or fewer values than that, or the tensor
     *     has no dimension
     */
    public void setFloats(float[] values, long... row) {
        if (values.length != rowLength()) {
            throw new IllegalArgumentException(
                    "%s values are not a row of %s elements of the tensor %s"
                            .formatted(values.length, rowLength(), this));
        }
        long[] index = Arrays.copyOf(row, row.length + 1);
        for (int i = 0; i < values.length; i++) {
            index[row.length] = i;
            setFloat(values[i], index);
        }
    }

    private int rowLength() {
        if (shape.length == 0 || shape[shape.length - 1] > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "%s has no rows that fit an array: use getFloat or setFloat".formatted(this));
        }
        return (int) shape[shape.length - 1];
    }

    /**
     * An element of a host tensor as a {@code long}: integers by value, floating-point types as raw
     * bits, zero-extended.
     */
    public long getLong(long... index) {
        long at = offsetBytes(index);
        return switch (dtype) {
            case I64 -> elements().get(LONG, at);
            case I32 -> elements().get(INT, at);
            case F32 -> elements().get(INT, at) & 0xffffffffL;
            case BF16 -> elements().get(SHORT, at) & 0xffffL;
            case FP8_E4M3, BOOL -> elements().get(ValueLayout.JAVA_BYTE, at) & 0xffL;
        };
    }

    /** Stores an integer, or the raw bits of a floating-point type, into a host tensor. */
    public void setLong(long value, long... index) {
        long at = offsetBytes(index);
        switch (dtype) {
            case I64 -> elements().set(LONG, at, value);
            case I32, F32 -> elements().set(INT, at, (int) value);
            case BF16 -> elements().set(SHORT, at, (short) value);
            case FP8_E4M3, BOOL -> elements().set(ValueLayout.JAVA_BYTE, at, (byte) value);
        }
    }

    @Override
    public String toString() {
        String where = isContiguous() ? "" : " strides " + Arrays.toString(strides);
        return dtype + Arrays.toString(shape) + where + " on " + device;
    }
}
