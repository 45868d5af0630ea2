package io.deepep.djl.gate;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Parameter;

/**
 * The gate of DeepSeek-V3. Scores are sigmoids; for the selection only, a learnt correction bias
 * that balances the load is added to the score of each expert. Experts are in groups, and only
 * experts of the best groups can be selected; the score of a group is the sum of its two best
 * experts. Weights are the scores without bias.
 *
 * <p>Parameters: {@code weight} [E,H] and {@code e_score_correction_bias} [E], FLOAT32, named as in
 * the model's checkpoints.
 */
public final class DeepSeekV3Gate extends ExpertGate {
    private static final int BEST_OF_GROUP = 2;

    private final GateGroups groups;
    private final Parameter bias;

    /**
     * Creates a gate with groups.
     *
     * @param rule the numbers of experts, and how weights are computed from scores
     * @param numGroups number of groups into which the experts are divided evenly
     * @param numTopkGroups number of groups that a token may select from, which must have at least
     *     K experts together
     */
    public DeepSeekV3Gate(TopkRule rule, int numGroups, int numTopkGroups) {
        super(rule);
        groups = new GateGroups(rule, numGroups, numTopkGroups);
        bias = add("e_score_correction_bias", Parameter.Type.BIAS);
    }

    @Override
    protected NDList select(NDArray logits, Values parameter) {
        NDArray scores = Activation.sigmoid(logits);
        NDArray choice = scores.add(parameter.of(bias));
        choice = groups.onlyBest(choice, BEST_OF_GROUP);
        NDArray topkIdx = choice.topK(rule().numTopk(), 1, true, false).get(1);
        return new NDList(topkIdx, scores.gather(topkIdx, 1));
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        super.prepare(inputShapes);
        bias.setShape(new Shape(rule().numExperts()));
    }
}
