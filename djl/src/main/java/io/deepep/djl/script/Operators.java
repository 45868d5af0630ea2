package io.deepep.djl.script;

import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;

/**
 * What DJL lacks, and what it would launch many kernels for: on a GPU, the launches of a decoding
 * step take longer than its kernels run. Results are attached to the manager of the first argument,
 * if nothing else is said. The functions are in {@code operators.py}.
 */
public final class Operators {
    private static final TorchScript SCRIPT = new TorchScript("Operators", "operators.py");

    private Operators() {}

    /**
     * [...,N] of x [...,K], in the type of the weight.
     *
     * @param weight [N,K]
     * @param bias [N] in the same type, or null
     */
    public static NDArray linear(NDArray x, NDArray weight, NDArray bias) {
        return bias == null
                ? SCRIPT.run("linear", x.getManager(), x, weight)
                : SCRIPT.run("linear_with_bias", x.getManager(), x, weight, bias);
    }

    /**
     * Rows scaled to a root mean square of 1, times the weight.
     *
     * @param x FLOAT32 [...,K]
     * @param weight FLOAT32 [K]
     */
    public static NDArray rmsNorm(NDArray x, NDArray weight, double epsilon) {
        return SCRIPT.run("rms_norm", x.getManager(), x, weight, epsilon);
    }

    /** {@code silu(gate) * up}, [...,I] of [...,2I], gate before up, in their type. */
    public static NDArray swiglu(NDArray gateUp) {
        return SCRIPT.run("swiglu", gateUp.getManager(), gateUp);
    }

    /**
     * That of gpt-oss: {@code g * sigmoid(alpha * g) * (u + 1)}, where g is gate up to the limit,
     * and u is up within the limit.
     */
    public static NDArray limitedSwiglu(NDArray gateUp, double limit, double alpha) {
        return SCRIPT.run("limited_swiglu", gateUp.getManager(), gateUp, limit, alpha);
    }

    /**
     * {@code x * cos + x[..., partners] * sin}.
     *
     * @param x [T,heads,C]
     * @param cos [T,1,C]
     * @param sin [T,1,C]
     * @param partners INT64 [C]
     */
    public static NDArray rotate(NDArray x, NDArray cos, NDArray sin, NDArray partners) {
        return SCRIPT.run("rotate", x.getManager(), x, cos, sin, partners);
    }

    /**
     * Queries and keys, rotated, and values of all heads: FLOAT32 [T,heads,C] and [T,kvHeads,C],
     * and [T,kvHeads,C] in the type of {@code qkv}.
     *
     * @param qkv [T,(heads+2*kvHeads)*C]
     * @param size C
     * @param norm FLOAT32 [heads+kvHeads,C], weights of {@link #rmsNorm} before heads are rotated;
     *     an empty array for none
     * @param cos as for {@link #rotate}, with its sines and partners
     */
    public static NDList heads(
            NDArray qkv,
            long numKvHeads,
            long size,
            NDArray norm,
            double epsilon,
            NDArray cos,
            NDArray sin,
            NDArray partners) {
        return SCRIPT.runForList(
                "heads",
                qkv.getManager(),
                qkv,
                numKvHeads,
                size,
                norm,
                epsilon,
                cos,
                sin,
                partners);
    }

    /**
     * A query in each of B slots attends to the slot's keys: [B,heads*Dv].
     *
     * @param q [B,heads,D]
     * @param k [B,L,kvHeads,D]; as many heads as there are for one of these share it
     * @param v [B,L,kvHeads,Dv]
     * @param mask [B,1,1,L], added to scores; all is computed in its type, which keys and values
     *     have too
     * @param sinks FLOAT32 [heads], scores that take their share of the softmax and give nothing;
     *     or null
     */
    public static NDArray attendSlots(
            NDArray q, NDArray k, NDArray v, NDArray mask, double scale, NDArray sinks) {
        return attend("attend_slots", q, k, v, mask, scale, sinks);
    }

    /**
     * The tokens of one sequence attend to its keys: [T,heads*Dv].
     *
     * @param q [T,heads,D]
     * @param k [L,kvHeads,D]
     * @param v [L,kvHeads,Dv]
     * @param mask [1,1,T,L]; all is computed in its type
     * @param sinks as in {@link #attendSlots}
     */
    public static NDArray attendSequence(
            NDArray q, NDArray k, NDArray v, NDArray mask, double scale, NDArray sinks) {
        return attend("attend_sequence", q, k, v, mask, scale, sinks);
    }

    private static NDArray attend(
            String function,
            NDArray q,
            NDArray k,
            NDArray v,
            NDArray mask,
            double scale,
            NDArray sinks) {
        NDManager manager = q.getManager();
        return sinks == null
                ? SCRIPT.run(function, manager, q, k, v, mask, scale)
                : SCRIPT.run(function + "_with_sinks", manager, q, k, v, mask, scale, sinks);
    }

    /**
     * {@code a[g] x b[g] + bias[g]} for all groups.
     *
     * @param a [G,M,K]
     * @param b [G,K,N]
     * @param bias [G,N], or null
     */
    public static NDArray bmm(NDArray a, NDArray b, NDArray bias) {
        return bias == null
                ? SCRIPT.run("bmm", a.getManager(), a, b)
                : SCRIPT.run("bmm_with_bias", a.getManager(), a, b, bias);
    }

    /** Writes {@link #bmm} to target [G,M,N] of the same type. */
    public static void bmmInto(NDArray a, NDArray b, NDArray bias, NDArray target) {
        NDArray another =
                bias == null
                        ? SCRIPT.run("bmm_into", a.getManager(), a, b, target)
                        : SCRIPT.run("bmm_with_bias_into", a.getManager(), a, b, bias, target);
        another.close(); // another handle of the target
    }

    /**
     * Adds to the rows of each group what belongs to it; to those behind the last end, anything.
     *
     * @param y [M,N]
     * @param addends [G,N]
     * @param ends INT32 [G]
     */
    public static NDArray addByGroup(NDArray y, NDArray addends, NDArray ends) {
        return SCRIPT.run("add_by_group", y.getManager(), y, addends, ends);
    }

    /** INT32 [G], where each group ends of which {@code counts}, INT32 [G], has the numbers. */
    public static NDArray endsOf(NDArray counts) {
        return SCRIPT.run("ends_of", counts.getManager(), counts);
    }

    /**
     * Slots INT64 [most] that are in use, by group, and their numbers 0, 1, ... INT32 [most], so
     * that {@code slots[i]} has row {@code rows[i]} of all that are in use. If fewer are, the last
     * one is repeated; if none is, a slot that is not in use.
     *
     * @param counts INT32 [G], slots of each group that are in use, from its first one on
     * @param ends INT32 [G], {@link #endsOf} these
     * @param numSlots of each group
     * @param most slots of all groups that may be in use
     */
    public static NDList slotsInUse(NDArray counts, NDArray ends, long numSlots, long most) {
        return SCRIPT.runForList("slots_in_use", counts.getManager(), counts, ends, numSlots, most);
    }

    /** {@code a[rows]}: rows INT64 or INT32 [n] of a [M,...]. */
    public static NDArray rowsOf(NDArray a, NDArray rows) {
        return SCRIPT.run("rows_of", rows.getManager(), a, rows);
    }

    /**
     * {@code a[rows] = values}: rows INT64 [n]; where one is there more than once, its values are
     * the same. They take the type of a.
     */
    public static void setRows(NDArray a, NDArray rows, NDArray values) {
        SCRIPT.run("set_rows", values.getManager(), a, rows, values).close(); // another handle of a
    }

    /** {@code a[first:first+number] = 0}. */
    public static void clearRows(NDArray a, long first, long number, NDManager scope) {
        SCRIPT.run("clear_rows", scope, a, first, number).close();
    }

    /** {@code target = a * factors}, rounded to the type of the target. */
    public static void multiplyInto(NDArray a, NDArray factors, NDArray target) {
        SCRIPT.run("multiply_into", a.getManager(), a, factors, target)
                .close(); // another handle of the target
    }

    /** A copy of an array of the CPU in pinned memory, from which a GPU reads by itself. */
    public static NDArray pinned(NDArray array) {
        return SCRIPT.run("pinned", array.getManager(), array);
    }

    /** Whether {@link #groupedMm} runs on the manager's GPU. */
    public static boolean hasGroupedMm(NDManager manager) {
        return Grouped.isThere(manager);
    }

    /**
     * {@code y[begin(g):ends[g]] = a[begin(g):ends[g]] x b[g]} for all groups at once. Rows behind
     * the last end are not written.
     *
     * @param a BF16 [M,K]
     * @param b BF16 [G,K,N]
     * @param ends INT32 [G] on the device
     * @return BF16 [M,N]
     */
    public static NDArray groupedMm(NDArray a, NDArray b, NDArray ends) {
        return Grouped.script.run("mm", a.getManager(), a, b, ends);
    }

    /** On its own: older versions of libtorch have no such operator, and older GPUs no kernel. */
    private static final class Grouped {
        private static final int ROWS = 16;
        static TorchScript script;
        private static Boolean isThere;

        static synchronized boolean isThere(NDManager manager) {
            if (isThere == null) {
                try (NDManager scope = manager.newSubManager()) {
                    script = new TorchScript("Grouped", "grouped.py");
                    script.run("try_mm", scope, scope.create(new int[] {ROWS}));
                    isThere = true;
                } catch (EngineException missing) {
                    isThere = false;
                }
            }
            return isThere;
        }
    }
}
