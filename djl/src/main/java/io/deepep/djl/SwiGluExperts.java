package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.DType;
import io.deepep.djl.exchange.ExpertRows;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.script.Operators;
import java.util.Objects;

/**
 * The usual experts, {@code down(silu(gate(x)) * up(x))}, with one array per matrix for all experts
 * of a rank. On a GPU, slots of low-latency mode are all computed, in use or not, if that takes no
 * longer than to pack those in use. In BF16 on a GPU, other rows take two grouped multiplications,
 * which skip experts without rows. Otherwise each expert multiplies its own rows.
 */
public final class SwiGluExperts implements LocalExperts {
    private static final int GROUPED_ALIGNMENT = 8;

    /** With more rows, multiplying takes longer than reading the matrices. */
    private static final int FEW_SLOTS = 128;

    /** Take no longer than packing; measured on an H200. */
    private static final double FEW_OPERATIONS = 8e10;

    private final NDArray gateUp;
    private final NDArray down;
    private final Extras extras;
    private final boolean hasGroupedMm;
    private final double fewOperations;

    /** Transposed views: [El,H,2I] and [El,I,H]. */
    private final NDArray gateUpByInput;

    private final NDArray downByInput;

    private final LocalExperts oneByOne = LocalExperts.eachAsArrived(this::one);

    /**
     * Biases and limits that some models have.
     *
     * @param gateUpBias [El,2I], or null
     * @param downBias [El,H], or null
     * @param limit largest value of gate and largest magnitude of up, before up is increased by 1
     *     and both are multiplied (gpt-oss); 0 for no limit, in which case up is not increased
     * @param alpha factor of gate in the sigmoid, if there is a limit
     */
    public record Extras(NDArray gateUpBias, NDArray downBias, float limit, float alpha) {
        /** No biases and no limit. */
        public static final Extras NONE = new Extras(null, null, 0, 1);
    }

    /**
     * Creates experts over weights that the caller keeps and closes.
     *
     * @param gateUp [El,2I,H], the gate matrix and then the up matrix of each expert
     * @param down [El,H,I], of the same type
     */
    public SwiGluExperts(NDArray gateUp, NDArray down, Extras extras) {
        this(gateUp, down, extras, FEW_OPERATIONS);
    }

    SwiGluExperts(NDArray gateUp, NDArray down, Extras extras, double fewOperations) {
        this.fewOperations = fewOperations;
        this.gateUp = gateUp;
        this.down = down;
        this.extras = Objects.requireNonNull(extras, "extras");
        hasGroupedMm = hasGroupedMm(gateUp);
        gateUpByInput = gateUp.transpose(0, 2, 1);
        downByInput = down.transpose(0, 2, 1);
    }

    /** BF16 on GPUs that have it, rows of 16 bytes. */
    private static boolean hasGroupedMm(NDArray matrices) {
        Shape shape = matrices.getShape();
        return matrices.getDevice().isGpu()
                && TorchTensors.hasType(matrices, DType.BF16)
                && shape.get(1) % GROUPED_ALIGNMENT == 0
                && shape.get(2) % GROUPED_ALIGNMENT == 0
                && Operators.hasGroupedMm(matrices.getManager());
    }

    /** [El,2I,H]. */
    NDArray gateUp() {
        return gateUp;
    }

    /** [El,H,I]. */
    NDArray down() {
        return down;
    }

    @Override
    public NDArray run(ExpertRows rows) {
        if (rows.areInSlots() && gateUp.getDevice().isGpu() && computesAllSlots(rows)) {
            return inAllSlots(rows.x(), rows.out());
        }
        if (!hasGroupedMm) {
            return oneByOne.run(rows);
        }
        if (rows.areInSlots()) {
            return inSlotsInUse(rows);
        }
        NDArray x = TorchTensors.toTypeOf(gateUp, rows.x());
        return x.getShape().get(0) == 0 ? x : grouped(x, rows.ends());
    }

    private boolean computesAllSlots(ExpertRows rows) {
        long numSlots = rows.out().getShape().get(1);
        double operations = 2.0 * numSlots * (gateUp.size() + down.size());
        return numSlots <= FEW_SLOTS
                || operations <= fewOperations
                || (rows.areCaptured() && !hasGroupedMm);
    }

    /** Packs the slots in use. The host does not learn how many there are. */
    private NDArray inSlotsInUse(ExpertRows rows) {
        long numSlots = rows.out().getShape().get(1);
        NDArray ends = Operators.endsOf(rows.inUse());
        NDList use = Operators.slotsInUse(rows.inUse(), ends, numSlots, rows.mostInUse());
        NDArray slots = use.get(0);
        NDArray y = grouped(TorchTensors.toTypeOf(gateUp, rows.pack(slots)), ends);
        // What is behind the last one was not computed, and goes where that goes.
        rows.unpack(Operators.rowsOf(y, use.get(1)), slots);
        return rows.out();
    }

    /**
     * Computes all slots [El,S,H], in use or not. With few slots, a multiplication takes as long as
     * it takes to read the matrices, and the host need not wait to know which slots are in use.
     *
     * @param out where results are to be; those of its type are there at once
     */
    NDArray inAllSlots(NDArray slots, NDArray out) {
        NDArray x = TorchTensors.toTypeOf(gateUp, slots);
        NDArray activated = activate(Operators.bmm(x, gateUpByInput, extras.gateUpBias));
        if (!TorchTensors.haveSameType(out, down)) {
            return Operators.bmm(activated, downByInput, extras.downBias);
        }
        Operators.bmmInto(activated, downByInput, extras.downBias, out);
        return out;
    }

    /** Of rows [n,H] by expert, n above 0. */
    private NDArray grouped(NDArray x, NDArray ends) {
        NDArray hidden = Operators.groupedMm(x, gateUpByInput, ends);
        NDArray activated = activate(biased(hidden, extras.gateUpBias, ends));
        NDArray y = Operators.groupedMm(activated, downByInput, ends);
        return biased(y, extras.downBias, ends);
    }

    private static NDArray biased(NDArray y, NDArray bias, NDArray ends) {
        return bias == null ? y : Operators.addByGroup(y, bias, ends);
    }

    /** Of rows [n,H] of one expert. */
    NDArray one(int expert, NDArray rows) {
        NDManager scope = rows.getManager();
        NDArray x = TorchTensors.toTypeOf(gateUp, rows);
        NDArray hidden = x.matMul(gateUpByInput.get(scope, expert));
        if (extras.gateUpBias != null) {
            hidden = hidden.add(extras.gateUpBias.get(scope, expert));
        }
        NDArray y = activate(hidden).matMul(downByInput.get(scope, expert));
        return extras.downBias == null ? y : y.add(extras.downBias.get(scope, expert));
    }

    /** [...,I] of [...,2I], in the type of the matrices. */
    private NDArray activate(NDArray gateAndUp) {
        return extras.limit == 0
                ? Operators.swiglu(gateAndUp)
                : Operators.limitedSwiglu(gateAndUp, extras.limit, extras.alpha);
    }
}
