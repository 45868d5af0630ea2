package io.deepep.djl.gate;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;

/**
 * A gate that selects the K experts with the largest softmax probabilities (Mixtral, Qwen, DBRX).
 * If normalized, the weights are the softmax over the K logits, as in gpt-oss.
 */
public final class SoftmaxGate extends ExpertGate {
    private final GateGroups groups;
    private final Parameter bias;

    /** Creates a gate without groups or bias. */
    public SoftmaxGate(TopkRule rule) {
        this(rule, 1, 1, false);
    }

    /**
     * Creates a gate with groups, as in DeepSeek-V2, or a bias.
     *
     * @param rule the numbers of experts, and how weights are computed from scores
     * @param numGroups number of groups into which the experts are divided evenly; the score of a
     *     group is that of its best expert
     * @param numTopkGroups number of groups that a token may select from, which must have at least
     *     K experts together
     * @param hasBias whether there is a parameter {@code bias} [E], added to the logits
     */
    public SoftmaxGate(TopkRule rule, int numGroups, int numTopkGroups, boolean hasBias) {
        super(rule);
        groups = new GateGroups(rule, numGroups, numTopkGroups);
        bias = hasBias ? add("bias", Parameter.Type.BIAS) : null;
    }

    @Override
    protected NDList select(NDArray logits, Values parameter) {
        NDArray biased = bias == null ? logits : logits.add(parameter.of(bias));
        NDArray scores = rule().normalized() ? biased : biased.softmax(-1);
        NDList top = groups.onlyBest(scores, 1).topK(rule().numTopk(), 1, true, false);
        return new NDList(top.get(1), top.get(0));
    }

    /** What is left out of the sum of all experts divides all weights alike. */
    @Override
    protected NDArray normalize(NDArray scores) {
        return scores.softmax(1);
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        super.prepare(inputShapes);
        if (bias != null) {
            bias.setShape(new Shape(rule().numExperts()));
        }
    }
}
