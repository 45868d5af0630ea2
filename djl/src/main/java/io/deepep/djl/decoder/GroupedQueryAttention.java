package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.Projection;
import io.deepep.djl.Weights;
import io.deepep.djl.Weights.Outputs;
import java.io.IOException;

/**
 * Attention in which several heads share a key and a value: Mixtral, Qwen, GLM-4.5, and gpt-oss
 * with its windows and sinks.
 */
final class GroupedQueryAttention implements Attention {
    private static final String SLIDING = "sliding_attention";
    private static final String FULL = "full_attention";
    private static final String USED = "use_sliding_window";

    private final int headSize;
    private final Rope rope;

    /** Of queries, keys and values. */
    private final Projection qkv;

    private final Projection o;

    private final int numKvHeads;

    /**
     * Weights of each head of queries, then of each head of keys; empty where the model has none.
     */
    private final NDArray norm;

    private final double epsilon;
    private final Heads heads;
    private final KvCache keys;
    private final KvCache values;

    GroupedQueryAttention(
            CheckpointConfig config, int layer, Weights weights, Rope rope, DecoderOptions options)
            throws IOException {
        this.rope = rope;
        int hidden = config.number("hidden_size");
        int numHeads = config.number("num_attention_heads");
        numKvHeads = config.number("num_key_value_heads", numHeads);
        if (numKvHeads < 1 || numHeads % numKvHeads != 0) {
            throw new IllegalArgumentException(
                    "%s: num_attention_heads=%s is not a multiple of num_key_value_heads=%s"
                            .formatted(config, numHeads, numKvHeads));
        }
        headSize = headSize(config);
        boolean all = config.flag("attention_bias", false);
        long ofKeys = (long) numKvHeads * headSize;
        qkv =
                weights.projections(
                        hidden,
                        all || config.flag("qkv_bias", false),
                        new Outputs("q_proj", (long) numHeads * headSize),
                        new Outputs("k_proj", ofKeys),
                        new Outputs("v_proj", ofKeys));
        boolean last = all && !config.family().equals("glm4_moe");
        o = weights.projection("o_proj", hidden, (long) numHeads * headSize, last);
        norm =
                config.flag("use_qk_norm", false)
                        ? norm(weights, numHeads)
                        : weights.manager().create(new Shape(0));
        epsilon = config.decimal("rms_norm_eps", 1e-6);
        NDArray sinks =
                config.family().equals("gpt_oss") ? weights.vector("sinks", numHeads) : null;
        heads = new Heads(window(config, layer), 1 / Math.sqrt(headSize), sinks);
        keys = new KvCache(weights.manager(), options, numKvHeads, headSize);
        values = new KvCache(weights.manager(), options, numKvHeads, headSize);
    }

    private NDArray norm(Weights weights, int numHeads) throws IOException {
        NDArray ofQuery = weights.vector("q_norm.weight", headSize);
        NDArray ofKey = weights.vector("k_norm.weight", headSize);
        return NDArrays.concat(
                new NDList(
                        ofQuery.broadcast(numHeads, headSize),
                        ofKey.broadcast(numKvHeads, headSize)));
    }

    static int headSize(CheckpointConfig config) {
        return config.number(
                "head_dim", config.number("hidden_size") / config.number("num_attention_heads"));
    }

    /** Rotated channels of a head; pairs are, so an odd number takes one more. */
    static int rotated(CheckpointConfig config) {
        String key = "partial_rotary_factor";
        double part =
                config.family().equals("glm4_moe")
                        ? config.part("rope_parameters").decimal(key, config.decimal(key, 1))
                        : 1;
        int size = headSize(config);
        int rotated = (int) (size * part);
        if (rotated < 1 || rotated > size - rotated % 2) {
            throw new IllegalArgumentException(
                    "%s: %s=%s of head_dim=%s rotates %s channels; these must be at least 1, and pairs must be within the head"
                            .formatted(config, key, part, size, rotated));
        }
        return rotated;
    }

    /** 0 where the layer sees everything; as in transformers, by family. */
    static int window(CheckpointConfig config, int layer) {
        boolean slides =
                switch (config.family()) {
                    case "mixtral" -> true;
                    case "qwen2_moe" ->
                            config.flag(USED, false)
                                    && slides(
                                            config,
                                            layer,
                                            layer % 2 == 0
                                                    && layer
                                                            < config.number(
                                                                    "max_window_layers", 28));
                    case "qwen3_moe" -> config.flag(USED, false);
                    case "gpt_oss" -> slides(config, layer, layer % 2 == 0);
                    default -> false;
                };
        return slides ? config.number("sliding_window", 0) : 0;
    }

    private static boolean slides(CheckpointConfig config, int layer, boolean otherwise) {
        String type = config.element("layer_types", layer, otherwise ? SLIDING : FULL);
        if (!type.equals(SLIDING) && !type.equals(FULL)) {
            throw new IllegalArgumentException(
                    "%s: layer_types has %s for layer %s, which is neither %s nor %s"
                            .formatted(config, type, layer, SLIDING, FULL));
        }
        return type.equals(SLIDING);
    }

    @Override
    public NDArray apply(NDArray x, Pass pass) {
        NDList own =
                rope.heads(qkv.multiply(x), numKvHeads, headSize, norm, epsilon, pass.angles(rope));
        NDArray query = own.get(0);
        NDArray key = own.get(1);
        NDArray value = own.get(2);
        keys.write(pass, key);
        values.write(pass, value);
        return o.multiply(heads.attend(pass, query, key, value, keys.all(), values.all()));
    }
}
