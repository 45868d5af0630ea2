package io.deepep.djl.example;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/** Attention of every token to itself and those before it: one sequence [S,H] in, [S,H] out. */
final class CausalAttention extends AbstractBlock {
    private final ModelSize size;
    private final Block qProj;
    private final Block kProj;
    private final Block vProj;
    private final Block oProj;

    CausalAttention(ModelSize size) {
        this.size = size;
        qProj = addChildBlock("q_proj", projection());
        kProj = addChildBlock("k_proj", projection());
        vProj = addChildBlock("v_proj", projection());
        oProj = addChildBlock("o_proj", projection());
    }

    private Linear projection() {
        return Linear.builder().setUnits(size.hidden()).optBias(false).build();
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray x = inputs.singletonOrThrow();
        long length = x.getShape().get(0);
        NDArray q = heads(qProj.forward(store, inputs, training));
        NDArray k = heads(kProj.forward(store, inputs, training));
        NDArray v = heads(vProj.forward(store, inputs, training));
        NDArray scores = q.matMul(k.transpose(0, 2, 1)).div(Math.sqrt(size.headSize()));
        NDArray mask = notAfter(x.getManager(), length);
        NDArray never = scores.zerosLike().sub(Float.POSITIVE_INFINITY);
        NDArray weights =
                NDArrays.where(mask.broadcast(scores.getShape()), scores, never).softmax(-1);
        NDArray mixed = weights.matMul(v).transpose(1, 0, 2).reshape(length, size.hidden());
        return oProj.forward(store, new NDList(mixed), training);
    }

    /** [S,H] as [heads, S, H/heads]. */
    private NDArray heads(NDList projected) {
        return projected
                .singletonOrThrow()
                .reshape(-1, size.numHeads(), size.headSize())
                .transpose(1, 0, 2);
    }

    /** [1,S,S], whether the column's token is not after the row's. */
    private static NDArray notAfter(NDManager manager, long length) {
        NDArray position = manager.arange(0, (int) length, 1, DataType.INT64);
        return position.reshape(1, 1, length).lte(position.reshape(1, length, 1));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        getChildren().values().forEach(child -> child.initialize(manager, dataType, inputShapes));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}
