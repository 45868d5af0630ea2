package io.deepep.buffer;

import io.deepep.CombinePlan;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.spi.TensorChecks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The memory that a plan names. What cannot change is checked once, what can (an arena closes,
 * another thread calls) at each use, without garbage: refused in the middle of a call, it would
 * cost all ranks their buffer.
 */
final class PlanMemory {
    /** Inherits nothing, or it would keep the context class loader of the first caller for ever. */
    private static final Thread OTHER_THREAD =
            Thread.ofPlatform().inheritInheritableThreadLocals(false).unstarted(() -> {});

    /** A tensor by the name that errors give it. */
    private record Named(String name, Tensor tensor) {
        boolean isShareable() {
            return !tensor.device().isHost() || tensor.segment().isAccessibleBy(OTHER_THREAD);
        }
    }

    /** Of the host; what the driver knows of device memory is not asked. */
    private final Named[] hostTensors;

    /** What the second half of a call uses. */
    private final Named[] lateHostTensors;

    /** A tensor that one thread alone may touch, or null. */
    private final Named confined;

    private PlanMemory(List<Named> all, List<Named> late) {
        hostTensors = onHost(all);
        lateHostTensors = onHost(late);
        confined = all.stream().filter(named -> !named.isShareable()).findFirst().orElse(null);
    }

    private static Named[] onHost(List<Named> tensors) {
        return tensors.stream()
                .filter(named -> named.tensor.device().isHost())
                .toArray(Named[]::new);
    }

    /**
     * Checks what cannot change.
     *
     * @param own the buffer's memory, which peers write: nothing that a call is given may lie there
     *     but rows to combine, which peers read from the NVL buffer
     * @throws IllegalArgumentException with the tensor's name and the cure
     */
    static PlanMemory of(Plan plan, OwnMemory own) {
        List<Named> all = new ArrayList<>();
        List<Named> outputs = new ArrayList<>();
        plan.state().forEachTensor((name, tensor) -> add(all, name, tensor));
        plan.state().forEachOutput((name, tensor) -> add(outputs, name, tensor));
        for (Named output : outputs) {
            TensorChecks.requireWritable(output.name, output.tensor);
            requireApart(output, all);
        }
        for (Named named : all) {
            boolean combined =
                    plan instanceof CombinePlan
                            && (named.name.equals("x") || named.name.equals("scales"));
            own.requireElsewhere(named.name, named.tensor, combined);
        }
        // A combine weighs and sums only what comes back; a dispatch has sent its inputs.
        boolean combines = plan instanceof LowLatencyCombinePlan;
        return new PlanMemory(
                all,
                combines
                        ? all.stream().filter(named -> !named.name.equals("x")).toList()
                        : outputs);
    }

    private static void add(List<Named> tensors, String name, Tensor tensor) {
        if (tensor != null) {
            tensors.add(new Named(name, tensor));
        }
    }

    private static void requireApart(Named output, List<Named> all) {
        for (Named other : all) {
            if (!other.name.equals(output.name)
                    && !isInPlace(output, other)
                    && MemoryRange.overlap(output.tensor, other.tensor)) {
                throw new IllegalArgumentException(
                        ("%s overlaps %s, but the call writes the former while it uses the latter; give it separate"
                                        + " memory")
                                .formatted(output.name, other.name));
            }
        }
    }

    /** The sum may take the place of a bias: each element is read before it is written. */
    private static boolean isInPlace(Named output, Named other) {
        return other.name.startsWith("bias")
                && other.tensor.address() == output.tensor.address()
                && Arrays.equals(other.tensor.strides(), output.tensor.strides());
    }

    /** Refuses memory that is gone, or that the calling thread may not touch. */
    void requireUsable() {
        requireUsable(hostTensors);
    }

    /** The same of what the second half of a call uses; the rest may be gone by then. */
    void requireLateUsable() {
        requireUsable(lateHostTensors);
    }

    private static void requireUsable(Named[] tensors) {
        for (Named named : tensors) {
            TensorChecks.requireUsable(named.name, named.tensor);
        }
    }

    /** Refuses memory that another thread, which is to run the operation, may not touch. */
    void requireShareable() {
        if (confined != null) {
            throw new IllegalArgumentException(
                    ("%s is %s in a confined arena, but an asynchronous call runs on a thread of the"
                                    + " buffer; allocate it from Arena.ofShared() or Arena.ofAuto(), or"
                                    + " call synchronously")
                            .formatted(confined.name, confined.tensor));
        }
    }
}
