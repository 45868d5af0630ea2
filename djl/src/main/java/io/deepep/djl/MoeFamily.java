package io.deepep.djl;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * What differs between the models' checkpoints: names, and what a missing key of config.json means,
 * as in transformers.
 */
enum MoeFamily {
    MIXTRAL("block_sparse_moe", "num_local_experts", "intermediate_size", null),
    QWEN2_MOE("mlp", "num_experts", "moe_intermediate_size", "shared_expert"),
    QWEN3_MOE("mlp", "num_experts", "moe_intermediate_size", null),
    DEEPSEEK_V2("mlp", "n_routed_experts", "moe_intermediate_size", "shared_experts"),
    DEEPSEEK_V3("mlp", "n_routed_experts", "moe_intermediate_size", "shared_experts"),
    GLM4_MOE("mlp", "n_routed_experts", "moe_intermediate_size", "shared_experts"),
    GPT_OSS("mlp", "num_local_experts", "intermediate_size", null);

    /** The layer's name within a decoder layer. */
    final String layer;

    final String numExpertsKey;
    final String intermediateKey;

    /** The shared expert's name, or null. */
    final String sharedExpert;

    MoeFamily(String layer, String numExpertsKey, String intermediateKey, String sharedExpert) {
        this.layer = layer;
        this.numExpertsKey = numExpertsKey;
        this.intermediateKey = intermediateKey;
        this.sharedExpert = sharedExpert;
    }

    static MoeFamily of(CheckpointConfig config) {
        return named(config.family())
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "%s: model_type=%s is not one of "
                                                        .formatted(config, config.family())
                                                + Arrays.stream(values())
                                                        .map(MoeFamily::key)
                                                        .collect(Collectors.joining(", "))));
    }

    /** The family that {@code model_type} names. */
    static Optional<MoeFamily> named(String modelType) {
        return Arrays.stream(values()).filter(each -> each.key().equals(modelType)).findFirst();
    }

    private String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Whether transformers reads a key for this family; what others have is ignored. */
    boolean reads(String key) {
        return switch (key) {
            case "routed_scaling_factor" ->
                    this == DEEPSEEK_V2 || this == DEEPSEEK_V3 || this == GLM4_MOE;
            case "norm_topk_prob" -> this != MIXTRAL && this != DEEPSEEK_V2 && this != GPT_OSS;
            case "attention_bias" -> this != MIXTRAL && this != QWEN2_MOE;
            case "qkv_bias" -> this == QWEN2_MOE;
            case "use_qk_norm" -> this == GLM4_MOE;
            case "rope_interleave" -> this == DEEPSEEK_V3;
            default -> true;
        };
    }

    /** Values of keys that a config.json of this family may leave out, by transformers. */
    JsonObject defaults() {
        String json =
                switch (this) {
                    case MIXTRAL ->
                            """
                            {"norm_topk_prob": true, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
                             "rope_theta": 1e6}""";
                    case QWEN2_MOE ->
                            """
                            {"num_key_value_heads": 16, "sliding_window": 4096, "qkv_bias": true}""";
                    case QWEN3_MOE ->
                            """
                            {"num_key_value_heads": 4, "sliding_window": 4096, "use_qk_norm": true}""";
                    case DEEPSEEK_V2 -> "{\"n_shared_experts\": 2, \"q_lora_rank\": 1536}";
                    case DEEPSEEK_V3 ->
                            """
                            {"norm_topk_prob": true, "n_shared_experts": 1, "q_lora_rank": 1536,
                             "n_group": 8, "topk_group": 4, "first_k_dense_replace": 3,
                             "routed_scaling_factor": 2.5}""";
                    case GLM4_MOE ->
                            """
                            {"norm_topk_prob": true, "n_shared_experts": 1, "first_k_dense_replace": 1,
                             "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
                             "partial_rotary_factor": 0.5}""";
                    case GPT_OSS ->
                            """
                            {"norm_topk_prob": true, "num_key_value_heads": 8, "head_dim": 64, "attention_bias": true,
                             "rms_norm_eps": 1e-5, "sliding_window": 128, "rope_theta": 150000,
                             "rope_parameters": {"rope_type": "yarn", "factor": 32, "truncate": false,
                              "original_max_position_embeddings": 4096}}""";
                };
        return JsonParser.parseString(json).getAsJsonObject();
    }

    /** transformers 5 writes one key for all where models had their own. */
    int numExperts(CheckpointConfig config) {
        String other = "num_local_experts";
        return config.number(
                config.has(numExpertsKey) || !config.has(other) ? numExpertsKey : other);
    }

    /** Gate, up and down matrix of an expert. */
    String[] matrices() {
        return this == MIXTRAL
                ? new String[] {"w1", "w3", "w2"}
                : new String[] {"gate_proj", "up_proj", "down_proj"};
    }

    String gate() {
        return this == GPT_OSS ? "router" : "gate";
    }
}
