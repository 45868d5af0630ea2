package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.MoeLayers;
import io.deepep.djl.Projection;
import io.deepep.djl.SwiGlu;
import io.deepep.djl.Weights;
import io.deepep.djl.exchange.ExpertExchange;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The model as one rank has it: all but the experts is whole on every rank.
 *
 * @param embedding [V,H]
 */
record Model(NDArray embedding, List<DecoderLayer> layers, RmsNorm norm, Projection head) {
    /** Loads a checkpoint's tensors, of the experts this rank's alone. */
    static Model load(
            CheckpointConfig config,
            Weights weights,
            DecoderOptions options,
            ExpertExchange exchange)
            throws IOException {
        int hidden = config.number("hidden_size");
        int vocabulary = config.number("vocab_size");
        double epsilon = config.decimal("rms_norm_eps", 1e-6);
        NDArray embedding = weights.matrix("model.embed_tokens.weight", vocabulary, hidden);
        Rope rope = rope(config, weights, options);
        MoeLayers experts = MoeLayers.of(config);
        List<DecoderLayer> layers = new ArrayList<>();
        for (int layer = 0; layer < config.number("num_hidden_layers"); layer++) {
            Weights own = weights.at("model.layers." + layer);
            boolean sparse = experts.isSparse(layer);
            layers.add(
                    new DecoderLayer(
                            RmsNorm.load(own, "input_layernorm", hidden, epsilon),
                            attention(config, layer, own.at("self_attn"), rope, options),
                            RmsNorm.load(own, "post_attention_layernorm", hidden, epsilon),
                            sparse ? experts.load(own, exchange) : null,
                            sparse ? null : dense(config, own.at("mlp"))));
        }
        return new Model(
                embedding,
                layers,
                RmsNorm.load(weights, "model.norm", hidden, epsilon),
                // As transformers: a head that is there is not the embedding, whatever is said.
                config.flag("tie_word_embeddings", false) && !weights.has("lm_head.weight")
                        ? new Projection(embedding, null)
                        : weights.projection("lm_head", vocabulary, hidden, false));
    }

    private static boolean isLatent(CheckpointConfig config) {
        return config.family().startsWith("deepseek");
    }

    private static Rope rope(CheckpointConfig config, Weights weights, DecoderOptions options) {
        if (isLatent(config)) {
            int channels = LatentAttention.rotated(config);
            boolean interleaved = config.flag("rope_interleave", true);
            return new Rope(
                    config,
                    channels,
                    channels,
                    interleaved,
                    options.maxLength(),
                    weights.manager());
        }
        return new Rope(
                config,
                GroupedQueryAttention.headSize(config),
                GroupedQueryAttention.rotated(config),
                false,
                options.maxLength(),
                weights.manager());
    }

    private static Attention attention(
            CheckpointConfig config, int layer, Weights weights, Rope rope, DecoderOptions options)
            throws IOException {
        return isLatent(config)
                ? new LatentAttention(config, weights, rope, options)
                : new GroupedQueryAttention(config, layer, weights, rope, options);
    }

    private static SwiGlu dense(CheckpointConfig config, Weights weights) throws IOException {
        return SwiGlu.load(
                weights, config.number("hidden_size"), config.number("intermediate_size"));
    }

    /**
     * One pass. Collective: ranks without tokens make it too.
     *
     * @param tokens INT64 [T]
     * @param wanted INT64 [N], tokens of the pass whose logits are asked for
     * @return FLOAT32 [N,V]
     */
    NDArray logits(NDArray tokens, Pass pass, NDArray wanted) {
        NDArray x =
                embedding
                        .get(pass.scope(), new NDIndex("{}", tokens))
                        .toType(DataType.FLOAT32, false);
        for (DecoderLayer layer : layers) {
            x = layer.apply(x, pass);
        }
        return head.apply(norm.apply(x.get(new NDIndex("{}", wanted))));
    }
}
