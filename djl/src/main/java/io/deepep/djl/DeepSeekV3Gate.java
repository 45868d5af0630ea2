package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Parameter;

/**
 * The gate of DeepSeek-V3: scores are sigmoids; a correction bias per expert, learnt to balance
 * load, is added for the choice only; experts lie in groups, and only those of the best groups can
 * be chosen. A group is as good as the sum of its two best experts. The weights are the scores
 * without bias.
 *
 * <p>Parameters: {@code weight} [E,H] and {@code e_score_correction_bias} [E], FLOAT32, named as in
 * the model's checkpoints.
 */
public final class DeepSeekV3Gate extends Gate {
    private static final int BEST_OF_GROUP = 2;

    private final int numGroups;
    private final int numTopkGroups;
    private final Parameter bias;

    /**
     * A gate with groups.
     *
     * @param numGroups the experts are split evenly into these
     * @param numTopkGroups groups that a token may choose from; they have at least K experts
     */
    public DeepSeekV3Gate(TopkRule rule, int numGroups, int numTopkGroups) {
        super(rule);
        if (numGroups < 1 || rule.numExperts() % numGroups != 0) {
            throw new IllegalArgumentException(
                    "numExperts="
                            + rule.numExperts()
                            + " is not a multiple of numGroups="
                            + numGroups);
        }
        int groupSize = rule.numExperts() / numGroups;
        if (numTopkGroups < 1
                || numTopkGroups > numGroups
                || numTopkGroups * groupSize < rule.numTopk()) {
            throw new IllegalArgumentException(
                    "numTopkGroups="
                            + numTopkGroups
                            + " is not in [1, numGroups="
                            + numGroups
                            + "], or its groups of "
                            + groupSize
                            + " experts have fewer than numTopk="
                            + rule.numTopk());
        }
        this.numGroups = numGroups;
        this.numTopkGroups = numTopkGroups;
        bias =
                addParameter(
                        Parameter.builder()
                                .setName("e_score_correction_bias")
                                .setType(Parameter.Type.BIAS)
                                .build());
    }

    @Override
    protected NDList select(NDArray logits, Values parameter) {
        NDArray scores = Activation.sigmoid(logits);
        NDArray choice = scores.add(parameter.of(bias));
        if (numTopkGroups < numGroups) {
            choice = withinBestGroups(choice);
        }
        NDArray topkIdx = choice.topK(rule().numTopk(), 1, true, true).get(1);
        return new NDList(topkIdx, scores.gather(topkIdx, 1));
    }

    /** The choice scores, with minus infinity for experts of other groups. */
    private NDArray withinBestGroups(NDArray choice) {
        long numTokens = choice.getShape().get(0);
        int groupSize = rule().numExperts() / numGroups;
        NDArray grouped = choice.reshape(numTokens, numGroups, groupSize);
        NDArray groupScores =
                grouped.topK(Math.min(BEST_OF_GROUP, groupSize), 2, true, true)
                        .get(0)
                        .sum(new int[] {2});
        NDArray best = groupScores.topK(numTopkGroups, 1, true, true).get(1);
        NDArray allowed =
                best.oneHot(numGroups, DataType.FLOAT32)
                        .sum(new int[] {1})
                        .gt(0)
                        .expandDims(2)
                        .broadcast(new Shape(numTokens, numGroups, groupSize));
        NDArray never = grouped.zerosLike().sub(Float.POSITIVE_INFINITY);
        return NDArrays.where(allowed, grouped, never).reshape(choice.getShape());
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        super.prepare(inputShapes);
        bias.setShape(new Shape(rule().numExperts()));
    }
}
