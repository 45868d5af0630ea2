package io.deepep.djl.gate;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import io.deepep.djl.ExpertParallelMoE;

/**
 * Selects the experts of every token. The input is tokens [T,H]; the outputs are {@code topkIdx}
 * INT64 [T,K], global experts, and {@code topkWeights} FLOAT32 [T,K]. A gate has the parameter
 * {@code weight} FLOAT32 [E,H], and computes scores in FLOAT32 for any type of tokens.
 *
 * <p>{@link ExpertParallelMoE} accepts any block with such outputs; subclasses of this class only
 * implement {@link #select}.
 */
public abstract class ExpertGate extends AbstractBlock {
    private final TopkRule rule;
    private final Parameter weight;

    /** Creates a gate with one parameter; subclasses may add others. */
    @SuppressWarnings("this-escape") // DJL's way of adding parameters
    protected ExpertGate(TopkRule rule) {
        this.rule = rule;
        weight = add("weight", Parameter.Type.WEIGHT);
    }

    final Parameter add(String name, Parameter.Type type) {
        return addParameter(Parameter.builder().setName(name).setType(type).build());
    }

    /** The numbers of experts, and how weights are computed from scores. */
    public final TopkRule rule() {
        return rule;
    }

    /**
     * Selects experts by the output of the linear layer.
     *
     * @param logits FLOAT32 [T,E], T at least 1
     * @param parameter returns the value of a parameter that the subclass added
     * @return {@code topkIdx}, in any order, and the scores of these experts [T,K]
     */
    protected abstract NDList select(NDArray logits, Values parameter);

    /** Weights [T,K] of the selected scores; by default, each divided by their sum. */
    protected NDArray normalize(NDArray scores) {
        // As the models' own code: sigmoids may all be 0.
        return scores.div(scores.sum(new int[] {1}, true).add(scalar(1e-20f)));
    }

    /** Returns the values of parameters on the device of the tokens. */
    @FunctionalInterface
    protected interface Values {
        /** The value of {@code parameter}. */
        NDArray of(Parameter parameter);
    }

    @Override
    protected final NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray x = inputs.singletonOrThrow();
        if (x.getShape().get(0) == 0) {
            Shape none = new Shape(0, rule.numTopk());
            NDManager manager = x.getManager();
            return new NDList(
                    manager.create(none, DataType.INT64), manager.create(none, DataType.FLOAT32));
        }
        Values values = parameter -> store.getValue(parameter, x.getDevice(), training);
        NDArray tokens = x.toType(DataType.FLOAT32, false);
        NDArray logits = Linear.linear(tokens, values.of(weight)).singletonOrThrow();
        NDList selected = select(logits, values);
        NDArray weights = selected.get(1);
        if (rule.normalized()) {
            weights = normalize(weights);
        }
        if (rule.scalingFactor() != 1) {
            weights = weights.mul(scalar(rule.scalingFactor()));
        }
        return new NDList(selected.get(0), weights);
    }

    /**
     * Sets the shapes of the parameters for tokens of {@code hidden} channels, so that they can be
     * loaded.
     */
    public final void prepare(long hidden) {
        prepare(new Shape[] {new Shape(1, hidden)});
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        Shape tokens = inputShapes[0];
        weight.setShape(new Shape(rule.numExperts(), tokens.get(tokens.dimension() - 1)));
    }

    @Override
    public final Shape[] getOutputShapes(Shape[] inputShapes) {
        Shape shape = new Shape(inputShapes[0].get(0), rule.numTopk());
        return new Shape[] {shape, shape};
    }
}
