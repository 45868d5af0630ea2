package io.deepep.normal;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.util.Arrays;

/** Demands on one tensor. */
final class TensorChecks {
    /** A size that may be anything. */
    static final long ANY = -1;

    private final Device device;

    TensorChecks(Device device) {
        this.device = device;
    }

    void require(String name, Tensor tensor, DType dtype, long... shape) {
        if (tensor == null) {
            throw new IllegalArgumentException(name + "=null; give " + wanted(dtype, shape));
        }
        if (tensor.dtype() != dtype || !fits(tensor, shape)) {
            throw new IllegalArgumentException(name + " is " + tensor + "; it must be " + wanted(dtype, shape));
        }
        if (!tensor.device().equals(device)) {
            throw new IllegalArgumentException(
                    name + " lies on " + tensor.device() + " but the buffer works on " + device + "; copy it there");
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

    void requireContiguous(String name, Tensor tensor) {
        if (!tensor.isContiguous()) {
            throw new IllegalArgumentException(name + " is " + tensor + "; it must be contiguous: copy it");
        }
    }

    /** Rows may lie apart, their elements may not. */
    void requireContiguousRows(String name, Tensor tensor) {
        if (tensor.size(1) > 1 && tensor.stride(1) != 1) {
            throw new IllegalArgumentException(name + " is " + tensor + "; the elements of a row must be contiguous (stride 1): copy it");
        }
    }
}
