package io.deepep.djl.example;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import io.deepep.djl.ExpertExchange;
import java.util.ArrayList;
import java.util.List;

/**
 * A decoder whose feed-forward layers are mixtures of experts over ranks; all else is whole on
 * every rank. Tokens INT64 [T] of several sequences, one after the other, and the sequences'
 * lengths INT64 [B] in; logits FLOAT32 [T,V] out.
 */
final class MoeTransformer extends AbstractBlock {
    private final ModelSize size;
    private final Parameter embedding;
    private final List<Block> layers = new ArrayList<>();
    private final Block norm;
    private final Block head;

    MoeTransformer(ModelSize size, ExpertExchange exchange) {
        this.size = size;
        embedding =
                addParameter(
                        Parameter.builder()
                                .setName("embed_tokens.weight")
                                .setType(Parameter.Type.WEIGHT)
                                .optShape(new Shape(size.vocabulary(), size.hidden()))
                                .build());
        for (int layer = 0; layer < size.numLayers(); layer++) {
            layers.add(addChildBlock("layers." + layer, new DecoderLayer(size, exchange)));
        }
        norm = addChildBlock("norm", new RmsNorm());
        head =
                addChildBlock(
                        "lm_head",
                        Linear.builder().setUnits(size.vocabulary()).optBias(false).build());
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray tokens = inputs.get(0);
        NDArray table = store.getValue(embedding, tokens.getDevice(), training);
        NDArray x =
                tokens.getShape().get(0) == 0
                        ? tokens.getManager().create(new Shape(0, size.hidden()))
                        : table.get(tokens);
        for (Block layer : layers) {
            x = layer.forward(store, new NDList(x, inputs.get(1)), training).singletonOrThrow();
        }
        return head.forward(store, norm.forward(store, new NDList(x), training), training);
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Shape row = new Shape(1, size.hidden());
        getChildren().values().forEach(child -> child.initialize(manager, dataType, row));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0].add(size.vocabulary())};
    }
}
