package io.deepep.djl;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Activation;
import io.deepep.djl.exchange.ExpertRows;
import io.deepep.djl.exchange.LocalExperts;
import java.util.Arrays;
import java.util.Objects;

/**
 * The usual experts, {@code down(silu(gate(x)) * up(x))}, with one array per matrix for all experts
 * of a rank. In BF16 on a GPU they run as two grouped multiplications, which skip experts without
 * rows. Otherwise each expert multiplies its own rows.
 */
public final class SwiGluExperts implements LocalExperts {
    private final NDArray gateUp;
    private final NDArray down;
    private final Extras extras;

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
        this.gateUp = gateUp;
        this.down = down;
        this.extras = Objects.requireNonNull(extras, "extras");
        gateUpByInput = gateUp.transpose(0, 2, 1);
        downByInput = down.transpose(0, 2, 1);
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
        if (!TorchOperators.hasGroupedMm(gateUp)) {
            return oneByOne.run(rows);
        }
        NDArray x = TorchTensors.toTypeOf(gateUp, rows.x());
        int numRows = Arrays.stream(rows.counts()).sum();
        if (numRows == 0) {
            return rows.areInSlots() ? rows.out() : x;
        }
        if (!rows.areInSlots()) {
            return grouped(x, rows.ends(), rows.counts());
        }
        NDIndex used = slotsInUse(rows.counts(), numRows, x.getManager());
        int[] ends = rows.counts().clone();
        Arrays.parallelPrefix(ends, Integer::sum);
        NDArray packed = x.get(used);
        rows.out().set(used, grouped(packed, x.getManager().create(ends), rows.counts()));
        return rows.out();
    }

    /** Index of [El,S,...] that gives the slots in use, packed by expert. */
    static NDIndex slotsInUse(int[] counts, int numRows, NDManager scope) {
        long[] expertOf = expertOf(counts, numRows);
        long[] slotOf = new long[numRows];
        for (int row = 1; row < numRows; row++) {
            slotOf[row] = expertOf[row] == expertOf[row - 1] ? slotOf[row - 1] + 1 : 0;
        }
        return new NDIndex("{}, {}", scope.create(expertOf), scope.create(slotOf));
    }

    private static long[] expertOf(int[] counts, int numRows) {
        long[] expertOf = new long[numRows];
        int row = 0;
        for (int e = 0; e < counts.length; e++) {
            Arrays.fill(expertOf, row, row + counts[e], e);
            row += counts[e];
        }
        return expertOf;
    }

    /** Of rows [n,H] by expert, n above 0. */
    private NDArray grouped(NDArray x, NDArray ends, int[] counts) {
        NDArray hidden = TorchOperators.groupedMm(x, gateUpByInput, ends);
        NDArray activated =
                TorchTensors.toTypeOf(down, activate(biased(hidden, extras.gateUpBias, counts)));
        NDArray y = TorchOperators.groupedMm(activated, downByInput, ends);
        return biased(y, extras.downBias, counts);
    }

    /** Adds to every row what belongs to its expert. */
    private static NDArray biased(NDArray y, NDArray bias, int[] counts) {
        if (bias == null) {
            return y;
        }
        NDManager scope = y.getManager();
        long[] expertOf = expertOf(counts, (int) y.getShape().get(0));
        return y.add(bias.get(scope, new NDIndex("{}", scope.create(expertOf))));
    }

    private NDArray one(int expert, NDArray rows) {
        NDManager scope = rows.getManager();
        NDArray x = TorchTensors.toTypeOf(gateUp, rows);
        NDArray hidden = x.matMul(gateUpByInput.get(scope, expert));
        if (extras.gateUpBias != null) {
            hidden = hidden.add(extras.gateUpBias.get(scope, expert));
        }
        NDArray activated = TorchTensors.toTypeOf(down, activate(hidden));
        NDArray y = activated.matMul(downByInput.get(scope, expert));
        return extras.downBias == null ? y : y.add(extras.downBias.get(scope, expert));
    }

    /** FLOAT32 [...,I] of [...,2I]. */
    private NDArray activate(NDArray gateAndUp) {
        NDArray values = gateAndUp.toType(DataType.FLOAT32, false);
        long intermediate = gateUp.getShape().get(1) / 2;
        NDArray gate = values.get(new NDIndex("..., :{}", intermediate));
        NDArray up = values.get(new NDIndex("..., {}:", intermediate));
        if (extras.limit == 0) {
            return SwiGlu.silu(gate).mul(up);
        }
        NDArray limit = scalar(extras.limit);
        NDArray least = gate.minimum(limit);
        NDArray swish = least.mul(Activation.sigmoid(least.mul(scalar(extras.alpha))));
        return up.minimum(limit).maximum(scalar(-extras.limit)).add(scalar(1)).mul(swish);
    }
}
