package io.deepep.djl.gate;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
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
public final class DeepSeekV3Gate extends ExpertGate {
    private static final int BEST_OF_GROUP = 2;

    private final GateGroups groups;
    private final Parameter bias;

    /**
     * A gate with groups.
     *
     * @param numGroups the experts are split evenly into these
     * @param numTopkGroups groups that a token may choose from; they have at least K experts
     */
    public DeepSeekV3Gate(TopkRule rule, int numGroups, int numTopkGroups) {
        super(rule);
        groups = new GateGroups(rule, numGroups, numTopkGroups);
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
        choice = groups.onlyBest(choice, BEST_OF_GROUP);
        NDArray topkIdx = choice.topK(rule().numTopk(), 1, true, true).get(1);
        return new NDList(topkIdx, scores.gather(topkIdx, 1));
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        super.prepare(inputShapes);
        bias.setShape(new Shape(rule().numExperts()));
    }
}
