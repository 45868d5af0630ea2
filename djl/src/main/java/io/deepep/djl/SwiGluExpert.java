package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/**
 * The usual expert: {@code down(silu(gate(x)) * up(x))} without biases. Parameters {@code
 * gate_proj.weight} and {@code up_proj.weight} [I,H], {@code down_proj.weight} [H,I].
 */
public final class SwiGluExpert extends AbstractBlock {
    private final long intermediate;
    private final Block gateProj;
    private final Block upProj;
    private final Block downProj;

    /**
     * Creates an expert.
     *
     * @param hidden the hidden size H
     * @param intermediate the intermediate size I
     */
    public SwiGluExpert(long hidden, long intermediate) {
        this.intermediate = intermediate;
        gateProj = addChildBlock("gate_proj", linear(intermediate));
        upProj = addChildBlock("up_proj", linear(intermediate));
        downProj = addChildBlock("down_proj", linear(hidden));
    }

    private static Linear linear(long units) {
        return Linear.builder().setUnits(units).optBias(false).build();
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray gate = gateProj.forward(store, inputs, training).singletonOrThrow();
        NDArray up = upProj.forward(store, inputs, training).singletonOrThrow();
        return downProj.forward(
                store, new NDList(gate.mul(Activation.sigmoid(gate)).mul(up)), training, params);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Shape input = inputShapes[0];
        gateProj.initialize(manager, dataType, input);
        upProj.initialize(manager, dataType, input);
        downProj.initialize(
                manager, dataType, input.slice(0, input.dimension() - 1).add(intermediate));
    }
}
