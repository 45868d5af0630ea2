package io.deepep.djl;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Activation;
import io.deepep.djl.exchange.ExpertRows;
import io.deepep.djl.exchange.LocalExperts;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

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
        NDManager scope = x.getManager();
        long numSlots = x.getShape().get(1);
        NDArray used = slotsInUse(rows.counts(), numSlots, scope);
        int[] ends = rows.counts().clone();
        Arrays.parallelPrefix(ends, Integer::sum);
        NDArray packed = TorchOperators.rowsOf(byRow(x), used);
        NDArray results = grouped(packed, scope.create(ends), rows.counts());
        TorchOperators.setRows(byRow(rows.out()), used, results);
        return rows.out();
    }

    /** A view [El*S,H] of slots. */
    private static NDArray byRow(NDArray slots) {
        return slots.reshape(-1, slots.getShape().get(2));
    }

    /** The rows of [El*S,...] that are in use, by expert: INT64 [n]. */
    static NDArray slotsInUse(int[] counts, long numSlots, NDManager scope) {
        return scope.create(
                IntStream.range(0, counts.length)
                        .boxed()
                        .flatMapToLong(
                                e -> LongStream.range(0, counts[e]).map(s -> e * numSlots + s))
                        .toArray());
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
        NDList halves = values.split(2, values.getShape().dimension() - 1);
        NDArray gate = halves.get(0);
        NDArray up = halves.get(1);
        if (extras.limit == 0) {
            return SwiGlu.silu(gate).mul(up);
        }
        NDArray limit = scalar(extras.limit);
        NDArray least = gate.minimum(limit);
        NDArray swish = least.mul(Activation.sigmoid(least.mul(scalar(extras.alpha))));
        return up.minimum(limit).maximum(scalar(-extras.limit)).add(scalar(1)).mul(swish);
    }
}
