package io.deepep.spi;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Demands on the tensors of a plan; each method throws {@link IllegalArgumentException} with what
 * was given and what is wanted.
 */
public final class TensorChecks {
    /** A size that may be anything. */
    public static final long ANY = -1;

    private final Device device;
    private final String where;

    /** Checks for a buffer whose tensors lie on {@code device}. */
    public TensorChecks(Device device) {
        this(device, "the buffer works on");
    }

    /**
     * Checks for tensors that must lie on one device.
     *
     * @param where what else is there, as in "x lies on"
     */
    public TensorChecks(Device device, String where) {
        this.device = device;
        this.where = where;
    }

    /**
     * Demands presence, type, shape ({@link #ANY} for a free size), device, and memory that can be
     * used now.
     */
    public void require(String name, Tensor tensor, DType dtype, long... shape) {
        requireForm(name, tensor, dtype, shape);
        requireUsable(name, tensor);
    }

    /**
     * Demands presence, type, shape ({@link #ANY} for a free size), device, and an address that the
     * device can load elements from.
     */
    public void requireForm(String name, Tensor tensor, DType dtype, long... shape) {
        if (tensor == null) {
            throw new IllegalArgumentException(name + "=null; give " + wanted(dtype, shape));
        }
        if (tensor.dtype() != dtype || !fits(tensor, shape)) {
            throw new IllegalArgumentException(
                    name + " is " + tensor + "; it must be " + wanted(dtype, shape));
        }
        if (!tensor.device().equals(device)) {
            throw new IllegalArgumentException(
                    "%s lies on %s but %s %s; copy it there"
                            .formatted(name, tensor.device(), where, device));
        }
        requireAligned(name, tensor);
    }

    /** A GPU that loads an element from another address loses its context. */
    private static void requireAligned(String name, Tensor tensor) {
        long address = tensor.device().isHost() ? 0 : tensor.address();
        int bytes = tensor.dtype().sizeBytes();
        if (address % bytes != 0) {
            throw new IllegalArgumentException(
                    ("%s is %s at address 0x%s, which is not a multiple of its elements' %s bytes; give memory"
                                    + " that is")
                            .formatted(name, tensor, Long.toHexString(address), bytes));
        }
    }

    /**
     * Demands, of a host tensor, memory that is there and that the calling thread may touch. To be
     * asked at each use, since an arena can close in between; costs some nanoseconds.
     */
    public static void requireUsable(String name, Tensor tensor) {
        if (!tensor.device().isHost()) {
            return;
        }
        MemorySegment memory = tensor.segment();
        if (!memory.scope().isAlive()) {
            throw new IllegalArgumentException(
                    "%s is %s but its arena is closed; keep it open until the call has finished"
                            .formatted(name, tensor));
        }
        if (!memory.isAccessibleBy(Thread.currentThread())) {
            throw new IllegalArgumentException(
                    ("%s is %s in a confined arena of another thread than %s, which calls; allocate it from"
                                    + " Arena.ofShared() or Arena.ofAuto()")
                            .formatted(name, tensor, Thread.currentThread().getName()));
        }
    }

    /**
     * Demands memory that a call can write: not read-only, no element twice (as with a stride of
     * 0).
     */
    public static void requireWritable(String name, Tensor tensor) {
        if (tensor.device().isHost() && tensor.segment().isReadOnly()) {
            throw new IllegalArgumentException(
                    "%s is %s in read-only memory, but the call writes it; give memory that can be written"
                            .formatted(name, tensor));
        }
        long extent = 1;
        for (int d = tensor.rank() - 1; d >= 0; d--) {
            if (tensor.size(d) > 1 && tensor.stride(d) < extent) {
                throw new IllegalArgumentException(
                        ("%s is %s, whose elements lie over one another, but the call writes them; give each"
                                        + " an address of its own")
                                .formatted(name, tensor));
            }
            extent = Math.max(extent, tensor.size(d) * tensor.stride(d));
        }
    }

    private static boolean fits(Tensor tensor, long[] shape) {
        if (tensor.rank() != shape.length) {
            return false;
        }
        for (int d = 0; d < shape.length; d++) {
            if (shape[d] != ANY && tensor.size(d) != shape[d]) {
                return false;
            }
        }
        return true;
    }

    private static String wanted(DType dtype, long[] shape) {
        return dtype + Arrays.toString(shape).replace(Long.toString(ANY), "any");
    }

    /** Demands row-major order without gaps. */
    public void requireContiguous(String name, Tensor tensor) {
        if (!tensor.isContiguous()) {
            throw new IllegalArgumentException(
                    name + " is " + tensor + "; it must be contiguous: copy it");
        }
    }

    /** Demands that the last dimension has stride 1; rows may lie apart. */
    public void requireContiguousRows(String name, Tensor tensor) {
        int last = tensor.rank() - 1;
        if (tensor.size(last) > 1 && tensor.stride(last) != 1) {
            throw new IllegalArgumentException(
                    "%s is %s; the elements of a row must be contiguous (stride 1): copy it"
                            .formatted(name, tensor));
        }
    }
}
