package io.deepep.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import io.deepep.DType;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Operators of libtorch that DJL lacks, called by name: {@code aoti_torch_call_dispatcher} takes
 * the arguments as a stack of 64-bit values and leaves the results there. A tensor is a handle,
 * which the call gives up; an optional is 0, or the address of a value that the call frees.
 */
final class TorchOperators {
    private static final MethodHandle MALLOC =
            Linker.nativeLinker()
                    .downcallHandle(
                            Linker.nativeLinker().defaultLookup().findOrThrow("malloc"),
                            FunctionDescriptor.of(ADDRESS, JAVA_LONG));
    private static final long NONE = 0;
    private static final long FIRST_DIMENSION = 0;
    private static final int GROUPED_ALIGNMENT = 8;

    private static Boolean groupedMmIsThere;

    private TorchOperators() {}

    /**
     * Whether {@link #groupedMm} takes these matrices: BF16 on GPUs that have it, rows of 16 bytes.
     */
    static boolean hasGroupedMm(NDArray b) {
        return b.getDevice().isGpu()
                && TorchTensors.hasType(b, DType.BF16)
                && b.getShape().get(1) % GROUPED_ALIGNMENT == 0
                && b.getShape().get(2) % GROUPED_ALIGNMENT == 0
                && isGroupedMmThere(b.getManager());
    }

    /** Tried once: older versions of libtorch have no such operator, and older GPUs no kernel. */
    private static synchronized boolean isGroupedMmThere(NDManager manager) {
        if (groupedMmIsThere == null) {
            try (NDManager scope = manager.newSubManager()) {
                NDArray rows = TorchTensors.empty(scope, DType.BF16, 16, 16);
                NDArray matrices = TorchTensors.empty(scope, DType.BF16, 1, 16, 16);
                groupedMm(rows, matrices.transpose(0, 2, 1), scope.create(new int[] {16}));
                groupedMmIsThere = true;
            } catch (NativeCallException missing) {
                groupedMmIsThere = false;
            }
        }
        return groupedMmIsThere;
    }

    /**
     * {@code y[begin(g):ends[g]] = a[begin(g):ends[g]] x b[g]} for all groups at once. Rows behind
     * the last end are not written.
     *
     * @param a BF16 [M,K]
     * @param b BF16 [G,K,N]
     * @param ends INT32 [G] on the device
     * @return BF16 [M,N], attached to the manager of {@code a}
     */
    static NDArray groupedMm(NDArray a, NDArray b, NDArray ends) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stack =
                    arena.allocateFrom(
                            JAVA_LONG, shared(a), shared(b), some(shared(ends)), NONE, NONE);
            LibTorch.callDispatcher("aten::_grouped_mm", stack);
            return new PtNDArray((PtNDManager) a.getManager(), stack.get(JAVA_LONG, 0));
        }
    }

    /** {@code a[rows]}: rows INT64 [n] of a [M,...], attached to the manager of {@code a}. */
    static NDArray rowsOf(NDArray a, NDArray rows) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stack =
                    arena.allocateFrom(JAVA_LONG, shared(a), FIRST_DIMENSION, shared(rows));
            LibTorch.callDispatcher("aten::index_select", stack);
            return new PtNDArray((PtNDManager) a.getManager(), stack.get(JAVA_LONG, 0));
        }
    }

    /** {@code a[rows] = values}: rows INT64 [n], each at most once. */
    static void setRows(NDArray a, NDArray rows, NDArray values) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stack =
                    arena.allocateFrom(
                            JAVA_LONG, shared(a), FIRST_DIMENSION, shared(rows), shared(values));
            LibTorch.callDispatcher("aten::index_copy_", stack);
            LibTorch.delete(stack.get(JAVA_LONG, 0)); // another handle of a
        }
    }

    /** A copy of an array of the CPU in pinned memory, from which a GPU reads by itself. */
    static NDArray pinned(NDArray array) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stack = arena.allocateFrom(JAVA_LONG, shared(array), NONE);
            LibTorch.callDispatcher("aten::_pin_memory", stack);
            return new PtNDArray((PtNDManager) array.getManager(), stack.get(JAVA_LONG, 0));
        }
    }

    private static long shared(NDArray array) {
        return LibTorch.NEW_HANDLE.get(TorchTensors.handleOf(array));
    }

    /** An optional with a value. libtorch frees it, with {@code free} below {@code delete}. */
    private static long some(long value) {
        try {
            MemorySegment memory = (MemorySegment) MALLOC.invokeExact((long) Long.BYTES);
            memory.reinterpret(Long.BYTES).set(JAVA_LONG, 0, value);
            return memory.address();
        } catch (Throwable t) {
            throw LibTorch.rethrow(t);
        }
    }
}
