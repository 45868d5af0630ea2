package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.DType;
import io.deepep.DispatchResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.Tensor;
import io.deepep.djl.TorchTensors;
import io.deepep.djl.script.Operators;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * The rows that arrived for a rank's experts. In normal mode they are packed by expert: [M,H], with
 * the end of each expert's rows known on the GPU and on the host. In low-latency mode every expert
 * has the same number of slots, [El,S,H], of which the first are in use. That shape never changes,
 * so experts that compute all slots need not wait for counts.
 */
public final class ExpertRows {
    /** As they travelled: BF16, or FP8 with scales. */
    private final NDArray rows;

    private final NDArray scales;
    private final NDArray out;
    private final DataType tokenType;

    /** Null in a graph. */
    private final Supplier<int[]> counts;

    private int[] known;
    private NDArray x;

    /** Of packed rows only. */
    private final NDArray ends;

    private final NDArray weights;

    /** Of slots only. */
    private final NDArray inUse;

    private final long mostInUse;

    private ExpertRows(
            NDArray rows,
            NDArray scales,
            NDArray out,
            DataType tokenType,
            Supplier<int[]> counts,
            NDArray ends,
            NDArray weights,
            NDArray inUse,
            long mostInUse) {
        this.rows = rows;
        this.scales = scales;
        this.out = out;
        this.tokenType = tokenType;
        this.counts = counts;
        this.ends = ends;
        this.weights = weights;
        this.inUse = inUse;
        this.mostInUse = mostInUse;
    }

    /** Rows of normal mode, that are weighed here on their way into {@code out}. */
    static ExpertRows packed(
            DispatchResult received, Tensor out, DataType tokenType, NDManager scope) {
        Tensor counts = received.numRecvTokensPerExpert();
        int[] rowsOf = new int[(int) counts.size(0)];
        Arrays.setAll(rowsOf, e -> (int) counts.getLong(e));
        ExpertRows rows =
                new ExpertRows(
                        array(received.recvX(), scope),
                        array(received.recvScales(), scope),
                        array(out, scope),
                        tokenType,
                        () -> rowsOf,
                        array(received.expertOffsets().slice(0, 1, rowsOf.length), scope),
                        array(received.recvTopkWeights(), scope).reshape(-1, 1),
                        null,
                        0);
        rows.known = rowsOf;
        return rows;
    }

    /**
     * Rows of low-latency mode.
     *
     * @param captured whether this goes into a graph
     * @param inUse INT32 [El], how many slots are
     */
    static ExpertRows inSlots(
            LowLatencyDispatchResult received,
            boolean captured,
            NDArray inUse,
            Tensor out,
            DataType tokenType,
            NDManager scope) {
        long numExperts = out.size(0);
        long numSlots = out.size(1);
        return new ExpertRows(
                array(received.recvX(), scope),
                array(received.recvScales(), scope),
                array(out, scope),
                tokenType,
                captured ? null : () -> counts(received, inUse),
                null,
                null,
                inUse,
                numSlots * Math.min(numExperts, received.handle().numTopk()));
    }

    /** Null for null. */
    private static NDArray array(Tensor tensor, NDManager scope) {
        return tensor == null ? null : TorchTensors.arrayOf(scope, tensor);
    }

    /** A copy to the host that waits for peers would hold up all ranks of the GPU. */
    private static int[] counts(LowLatencyDispatchResult received, NDArray inUse) {
        received.event().synchronize();
        return inUse.toIntArray();
    }

    /** The rows, [M,H] or [El,S,H]; BF16, or FLOAT32 after FP8 transport. */
    public NDArray x() {
        if (x == null) {
            x = values(rows, scales);
        }
        return x;
    }

    /** Of rows that may have zeros behind their channels. */
    private NDArray values(NDArray arrived, NDArray itsScales) {
        NDArray values = itsScales == null ? arrived : Fp8Rows.dequantize(arrived, itsScales);
        long hidden = out.getShape().get(out.getShape().dimension() - 1);
        return values.getShape().get(values.getShape().dimension() - 1) == hidden
                ? values
                : values.get(new NDIndex().addEllipseDim().addSliceDim(0, hidden));
    }

    /** Whether {@link #x} is [El,S,H]. */
    public boolean areInSlots() {
        return ends == null;
    }

    /**
     * Whether this goes into a graph, whose replays have other numbers of rows: then there are no
     * {@link #counts}, and experts compute all slots, or those {@linkplain #inUse in use}.
     */
    public boolean areCaptured() {
        return counts == null;
    }

    /** How many slots of each expert are in use, INT32 [El] on the device. Only for slots. */
    public NDArray inUse() {
        requireSlots("inUse()", "see ends()");
        return inUse;
    }

    /**
     * Some slots, one after the other: [n,H] of the type of {@link #x}, which need not be made for
     * all. Only for slots.
     *
     * @param slots INT64 [n], e * S + s for slot s of expert e
     */
    public NDArray pack(NDArray slots) {
        requireSlots("slots", "see x()");
        if (scales == null) {
            return values(Operators.rowsOf(byRow(rows), slots), null);
        }
        // As words, because libtorch's kernels for this need not take FP8.
        Shape of = rows.getShape();
        long numWords = of.get(2) / Integer.BYTES;
        NDArray words = TorchTensors.viewAs(rows, DType.I32, of.get(0) * of.get(1), numWords);
        NDArray packed = Operators.rowsOf(words, slots);
        return values(
                TorchTensors.viewAs(packed, DType.FP8_E4M3, slots.size(), of.get(2)),
                Operators.rowsOf(byRow(scales), slots));
    }

    /**
     * Writes results of {@link #pack}ed slots to {@link #out}.
     *
     * @param results [n,H]
     */
    public void unpack(NDArray results, NDArray slots) {
        Operators.setRows(byRow(out()), slots, results);
    }

    private static NDArray byRow(NDArray ofSlots) {
        return ofSlots.reshape(-1, ofSlots.getShape().get(2));
    }

    /** Most slots of all experts that can be in use. Only for slots. */
    public long mostInUse() {
        requireSlots("mostInUse()", "all rows are in use");
        return mostInUse;
    }

    private void requireSlots(String what, String cure) {
        if (!areInSlots()) {
            throw new IllegalStateException("packed rows have no " + what + "; " + cure);
        }
    }

    /**
     * The end of each expert's rows (exclusive), INT32 [El] on the device. Only for packed rows.
     */
    public NDArray ends() {
        if (areInSlots()) {
            throw new IllegalStateException(
                    "rows in slots have no ends; the first counts()[e] rows of x()[e] are in use");
        }
        return ends;
    }

    /**
     * Memory for results, BF16 of the shape of {@link #x}; results that are written here are not
     * copied. Only for rows in slots, because packed rows are weighted first.
     */
    public NDArray out() {
        requireSlots("out()", "return the results in any memory");
        return out;
    }

    /** {@link #counts}, or null if nobody has waited for them. */
    int[] knownCounts() {
        return known;
    }

    /** Runs the experts, and has their results where they are sent from. */
    @SuppressWarnings("ReferenceEquality") // DJL's equals compares elements
    void runOn(LocalExperts experts) {
        NDArray results = experts.run(this);
        if (results == out) {
            return;
        }
        if (!results.getShape().equals(out.getShape())) {
            throw new IllegalArgumentException(
                    "the experts returned shape %s for rows of shape %s; they must keep the shape"
                            .formatted(results.getShape(), out.getShape()));
        }
        if (weights == null) {
            TorchTensors.cast(results, out);
        } else {
            Operators.multiplyInto(results, weights, out);
        }
    }

    /**
     * The number of rows of each local expert. In low-latency mode this waits until they have
     * arrived.
     *
     * @throws IllegalStateException if rows {@linkplain #areCaptured are captured}
     */
    public int[] counts() {
        if (areCaptured()) {
            throw new IllegalStateException(
                    "the rows go into a graph, and the host does not learn how many there are; compute all slots, or those inUse() tells of");
        }
        if (known == null) {
            known = counts.get();
        }
        return known;
    }

    /**
     * Runs each expert that has rows, and writes its results.
     *
     * @param asTokens whether rows are to have the type of the tokens
     */
    NDArray each(LocalExperts.One experts, boolean asTokens) {
        int[] numRows = counts();
        int first = 0;
        for (int e = 0; e < numRows.length; e++) {
            int count = numRows[e];
            if (count > 0) {
                NDArray ofScales = scales == null ? null : slice(scales, e, first, count);
                NDArray own = values(slice(rows, e, first, count), ofScales);
                if (asTokens) {
                    own = own.toType(tokenType, false);
                }
                NDArray result = experts.run(e, own);
                if (!result.getShape().equals(own.getShape())) {
                    throw new IllegalArgumentException(
                            "local expert %s returned shape %s for rows of shape %s; it must keep the shape"
                                    .formatted(e, result.getShape(), own.getShape()));
                }
                if (weights != null) {
                    result = result.mul(slice(weights, e, first, count));
                }
                TorchTensors.cast(result, slice(out, e, first, count));
            }
            first += count;
        }
        return out;
    }

    /** The rows of one expert that are in use. */
    private NDArray slice(NDArray of, int expert, int first, int count) {
        return areInSlots()
                ? of.get(expert).get(new NDIndex().addSliceDim(0, count))
                : of.get(new NDIndex().addSliceDim(first, first + (long) count));
    }
}
