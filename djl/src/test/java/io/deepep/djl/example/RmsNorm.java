package io.deepep.djl.example;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/** Rows scaled to a root mean square of 1, times a weight per channel. */
final class RmsNorm extends AbstractBlock {
    private static final float EPSILON = 1e-6f;

    private final Parameter weight =
            addParameter(
                    Parameter.builder().setName("weight").setType(Parameter.Type.GAMMA).build());

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray x = inputs.singletonOrThrow();
        NDArray meanSquare = x.square().mean(new int[] {-1}, true);
        NDArray scaled = x.div(meanSquare.add(EPSILON).sqrt());
        return new NDList(scaled.mul(store.getValue(weight, x.getDevice(), training)));
    }

    @Override
    protected void prepare(Shape[] inputShapes) {
        weight.setShape(inputShapes[0].slice(inputShapes[0].dimension() - 1));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}
