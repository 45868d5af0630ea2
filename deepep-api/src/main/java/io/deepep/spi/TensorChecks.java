package io.deepep.spi;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Checks the tensors of a plan. Each method throws an {@link IllegalArgumentException} that says
 * what was given and what is required.
 *
 * @param device where the tensors must be
 * @param where what requires the device, as part of a sentence: "x is on"
 */
public record TensorChecks(Device device, String where) {
    /** Stands for any size in a shape. */
    public static final long ANY = -1;

    /** Checks for a buffer whose tensors must be on {@code device}. */
    public TensorChecks(Device device) {
        this(device, "the buffer works on");
    }

    /**
     * Requires that a tensor is given, with the right type, shape ({@link #ANY} for any size) and
     * device, and that its memory can be used now.
     */
    public void require(String name, Tensor tensor, DType dtype, long... shape) {
        requireForm(name, tensor, dtype, shape);
        requireUsable(name, tensor);
    }

    /**
     * Requires that a tensor is given, with the right type, shape ({@link #ANY} for any size) and
     * device, at an address from which the device can load elements.
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
                    "%s is on %s but %s %s; copy it there"
                            .formatted(name, tensor.device(), where, device));
        }
        requireAligned(name, tensor);
    }

    /** A misaligned load on a GPU destroys its CUDA context. */
    private static void requireAligned(String name, Tensor tensor) {
        long address = tensor.device().isHost() ? 0 : tensor.address();
        int bytes = tensor.dtype().sizeBytes();
        if (address % bytes != 0) {
            throw new IllegalArgumentException(
                    ("%s is %s at address 0x%s, which is not a multiple of %s bytes, the size of an element;"
                                    + " give memory that is aligned")
                            .formatted(name, tensor, Long.toHexString(address), bytes));
        }
    }

    /**
     * Requires that the memory of a host tensor is still allocated, and that the calling thread may
     * access it. To be called at each use, because an arena can be closed in between; takes a few
     * nanoseconds.
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
                    ("%s is %s in a confined arena of another thread, but thread %s makes the call; allocate it from"
                                    + " Arena.ofShared() or Arena.ofAuto()")
                            .formatted(name, tensor, Thread.currentThread().getName()));
        }
    }

    /**
     * Requires memory that a call can write: not read-only, and without elements that share an
     * address (as with a stride of 0).
     */
    public static void requireWritable(String name, Tensor tensor) {
        if (tensor.device().isHost() && tensor.segment().isReadOnly()) {
            throw new IllegalArgumentException(
                    "%s is %s in read-only memory, but the call writes to it; give writable memory"
                            .formatted(name, tensor));
        }
        long extent = 1;
        for (int d = tensor.rank() - 1; d >= 0; d--) {
            if (tensor.size(d) > 1 && tensor.stride(d) < extent) {
                throw new IllegalArgumentException(
                        ("%s is %s, whose elements overlap, but the call writes to them; give a tensor whose"
                                        + " elements do not overlap")
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

    /** Requires row-major order without gaps. */
    public void requireContiguous(String name, Tensor tensor) {
        if (!tensor.isContiguous()) {
            throw new IllegalArgumentException(
                    name + " is " + tensor + "; it must be contiguous: copy it");
        }
    }

    /** Requires that the last dimension has stride 1; there may be gaps between rows. */
    public void requireContiguousRows(String name, Tensor tensor) {
        if (tensor.stride(tensor.rank() - 1) != 1) {
            throw new IllegalArgumentException(
                    "%s is %s; the elements of a row must be contiguous (stride 1): copy it"
                            .formatted(name, tensor));
        }
    }
}
