package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import io.deepep.djl.SwiGluExperts.Extras;
import java.io.IOException;
import java.util.function.UnaryOperator;

/** A rank's experts out of a checkpoint, where each has tensors of its own or all have one. */
record ExpertWeights(
        MoeFamily family, int numLocal, long hidden, long intermediate, float limit, float alpha) {

    /** Loads experts {@code first} to {@code first + numLocal - 1}. */
    SwiGluExperts load(Weights weights, int first) throws IOException {
        NDArray gateUp = weights.empty(numLocal, 2 * intermediate, hidden);
        NDArray down = weights.empty(numLocal, hidden, intermediate);
        if (family == MoeFamily.GPT_OSS) {
            return gptOss(weights, first, gateUp, down);
        }
        String[] names = family.matrices();
        try (NDManager scope = weights.manager().newSubManager()) {
            for (int e = 0; e < numLocal; e++) {
                Weights expert = weights.at(String.valueOf(first + e));
                NDArray gateAndUp = gateUp.get(scope, e);
                expert.load(names[0] + ".weight", gateAndUp.get(":{}", intermediate));
                expert.load(names[1] + ".weight", gateAndUp.get("{}:", intermediate));
                expert.load(names[2] + ".weight", down.get(scope, e));
            }
        }
        return new SwiGluExperts(gateUp, down, Extras.NONE);
    }

    /** All experts in one tensor, where columns of gate and up take turns. */
    private SwiGluExperts gptOss(Weights weights, int first, NDArray gateUp, NDArray down)
            throws IOException {
        NDArray gateUpBias = weights.empty(numLocal, 2 * intermediate);
        NDArray downBias = weights.empty(numLocal, hidden);
        NDIndex own = new NDIndex().addSliceDim(first, first + (long) numLocal);
        loadGateUp(weights, "gate_up_proj_bias", gateUpBias, all -> all.get(own));
        weights.load("down_proj_bias", downBias, all -> all.get(own));
        if (weights.has("gate_up_proj_blocks")) {
            mxfp4(weights, first, gateUp, down);
        } else { // inputs before outputs
            UnaryOperator<NDArray> byOutput = all -> all.get(own).transpose(0, 2, 1);
            loadGateUp(weights, "gate_up_proj", gateUp, byOutput);
            weights.load("down_proj", down, byOutput);
        }
        return new SwiGluExperts(gateUp, down, new Extras(gateUpBias, downBias, limit, alpha));
    }

    /** What {@code part} takes out of a tensor, gate and up rows one behind the other. */
    private void loadGateUp(
            Weights weights, String name, NDArray target, UnaryOperator<NDArray> part)
            throws IOException {
        try (NDManager scope = weights.manager().newSubManager()) {
            for (int up = 0; up < 2; up++) {
                NDIndex rows = new NDIndex(":, {}::2", up);
                NDIndex half = new NDIndex(":, {}:{}", from(up), from(up + 1));
                weights.load(name, target.get(scope, half), all -> part.apply(all).get(rows));
            }
        }
    }

    private long from(int up) {
        return up * intermediate;
    }

    /** Outputs before inputs. */
    private void mxfp4(Weights weights, int first, NDArray gateUp, NDArray down)
            throws IOException {
        try (NDManager scope = weights.manager().newSubManager()) {
            Mxfp4 format = new Mxfp4(scope);
            for (int e = 0; e < numLocal; e++) {
                int expert = first + e;
                for (int up = 0; up < 2; up++) {
                    NDIndex rows = new NDIndex("{}::2", up);
                    NDIndex half = new NDIndex("{}:{}", from(up), from(up + 1));
                    weights.loadMxfp4(
                            "gate_up_proj",
                            gateUp.get(scope, e).get(half),
                            format,
                            all -> all.get(expert).get(rows));
                }
                weights.loadMxfp4("down_proj", down.get(scope, e), format, all -> all.get(expert));
            }
        }
    }
}
