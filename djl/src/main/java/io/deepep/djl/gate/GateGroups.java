package io.deepep.djl.gate;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

/** Experts in groups of equal size, of which a token may choose from the best. */
final class GateGroups {
    private final int numGroups;
    private final int numTopkGroups;
    private final int groupSize;

    GateGroups(TopkRule rule, int numGroups, int numTopkGroups) {
        if (numGroups < 1 || rule.numExperts() % numGroups != 0) {
            throw new IllegalArgumentException(
                    "numExperts=%s is not a multiple of numGroups=%s"
                            .formatted(rule.numExperts(), numGroups));
        }
        groupSize = rule.numExperts() / numGroups;
        if (numTopkGroups < 1
                || numTopkGroups > numGroups
                || numTopkGroups * groupSize < rule.numTopk()) {
            throw new IllegalArgumentException(
                    ("numTopkGroups=%s is not in [1, numGroups=%s], or its groups of %s experts have fewer"
                                    + " than numTopk=%s")
                            .formatted(numTopkGroups, numGroups, groupSize, rule.numTopk()));
        }
        this.numGroups = numGroups;
        this.numTopkGroups = numTopkGroups;
    }

    /**
     * The scores, with minus infinity for experts of other than the best groups.
     *
     * @param scores FLOAT32 [T,E]
     * @param bestOfGroup a group is as good as the sum of so many of its best experts
     */
    NDArray onlyBest(NDArray scores, int bestOfGroup) {
        if (numTopkGroups == numGroups) {
            return scores;
        }
        long numTokens = scores.getShape().get(0);
        NDArray grouped = scores.reshape(numTokens, numGroups, groupSize);
        NDArray groupScores =
                grouped.topK(Math.min(bestOfGroup, groupSize), 2, true, false)
                        .get(0)
                        .sum(new int[] {2});
        NDArray best = groupScores.topK(numTopkGroups, 1, true, false).get(1);
        NDArray allowed =
                best.oneHot(numGroups, DataType.FLOAT32)
                        .sum(new int[] {1})
                        .gt(scalar(0))
                        .expandDims(2)
                        .broadcast(new Shape(numTokens, numGroups, groupSize));
        NDArray never = grouped.zerosLike().sub(scalar(Float.POSITIVE_INFINITY));
        return NDArrays.where(allowed, grouped, never).reshape(scores.getShape());
    }
}
