package io.deepep.djl.gate;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;

/**
 * The K experts of the largest softmax probabilities (Mixtral, Qwen, DBRX). Normalised, the weights
 * are the softmax over the K logits, which is also what gpt-oss has.
 */
public final class SoftmaxGate extends ExpertGate {
    private final GateGroups groups;
    private final Parameter bias;

    /** A gate of the given size. */
    public SoftmaxGate(TopkRule rule) {
        this(rule, 1, 1, false);
    }

    /**
     * A gate with groups, as DeepSeek-V2 has, or a bias.
     *
     * @param numGroups the experts are split evenly into these; a group is as good as its best
     *     expert
     * @param numTopkGroups groups that a token may choose from; they have at least K experts
     * @param hasBias whether there is a parameter {@code bias} [E], added to the logits
     */
    public SoftmaxGate(TopkRule rule, int numGroups, int numTopkGroups, boolean hasBias) {
        super(rule);
        groups = new GateGroups(rule, numGroups, numTopkGroups);
        bias =
                hasBias
                        ? addParameter(
                                Parameter.builder()
                                        .setName("bias")
                                        .setType(Parameter.Type.BIAS)
                                        .build())
                        : null;
    }

    @Override
    protected NDList select(NDArray logits, Values parameter) {
        NDArray biased = bias == null ? logits : logits.add(parameter.of(bias));
        NDArray choice = groups.onlyBest(biased.softmax(-1), 1);
        NDList top = choice.topK(rule().numTopk(), 1, true, true);
        return new NDList(top.get(1), top.get(0));
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        super.prepare(inputShapes);
        if (bias != null) {
            bias.setShape(new Shape(rule().numExperts()));
        }
    }
}
