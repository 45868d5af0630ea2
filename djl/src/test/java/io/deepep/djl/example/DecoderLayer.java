package io.deepep.djl.example;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import io.deepep.djl.DeepSeekV3Gate;
import io.deepep.djl.ExpertExchange;
import io.deepep.djl.ExpertParallelMoE;
import io.deepep.djl.SwiGluExpert;
import io.deepep.djl.TopkRule;

/**
 * Attention and experts, each with a norm before it and added to its input. Tokens of several
 * sequences follow one another: [T,H] and the sequences' lengths INT64 [B] in, [T,H] out.
 */
final class DecoderLayer extends AbstractBlock {
    private static final int NUM_GROUPS = 4;
    private static final int NUM_TOPK_GROUPS = 2;
    private static final float SCALING_FACTOR = 2.5f;

    private final Block attentionNorm;
    private final Block attention;
    private final Block mlpNorm;
    private final Block mlp;

    DecoderLayer(ModelSize size, ExpertExchange exchange) {
        attentionNorm = addChildBlock("input_layernorm", new RmsNorm());
        attention = addChildBlock("self_attn", new CausalAttention(size));
        mlpNorm = addChildBlock("post_attention_layernorm", new RmsNorm());
        TopkRule rule =
                TopkRule.of(size.numExperts(), size.numTopk()).withScalingFactor(SCALING_FACTOR);
        mlp =
                addChildBlock(
                        "mlp",
                        ExpertParallelMoE.builder(exchange, size.numExperts())
                                .gate(new DeepSeekV3Gate(rule, NUM_GROUPS, NUM_TOPK_GROUPS))
                                .experts(_ -> expert(size))
                                .sharedExpert(expert(size))
                                .build());
    }

    private static SwiGluExpert expert(ModelSize size) {
        return new SwiGluExpert(size.hidden(), size.intermediate());
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray x = inputs.get(0);
        // A rank without tokens has nothing to attend to, but its experts work for the others.
        if (x.getShape().get(0) > 0) {
            x = x.add(attend(store, normed(attentionNorm, store, x), inputs.get(1)));
            NDList experts = mlp.forward(store, new NDList(normed(mlpNorm, store, x)), training);
            return new NDList(x.add(experts.singletonOrThrow()));
        }
        return mlp.forward(store, new NDList(x), training);
    }

    private static NDArray normed(Block norm, ParameterStore store, NDArray x) {
        return norm.forward(store, new NDList(x), false).singletonOrThrow();
    }

    private NDArray attend(ParameterStore store, NDArray x, NDArray lengths) {
        NDList sequences = new NDList();
        long first = 0;
        for (long length : lengths.toLongArray()) {
            NDList sequence = new NDList(x.get(first + ":" + (first + length)));
            sequences.addAll(attention.forward(store, sequence, false));
            first += length;
        }
        return NDArrays.concat(sequences);
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        getChildren()
                .values()
                .forEach(child -> child.initialize(manager, dataType, inputShapes[0]));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
