package io.deepep.djl;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What differs between the names of the models' checkpoints. */
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
        return Arrays.stream(values())
                .filter(family -> family.key().equals(config.family()))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "%s: model_type=%s is not one of "
                                                        .formatted(config, config.family())
                                                + Arrays.stream(values())
                                                        .map(MoeFamily::key)
                                                        .collect(Collectors.joining(", "))));
    }

    private String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** transformers 5 writes one key for all where models had their own. */
    int numExperts(CheckpointConfig config) {
        return config.has(numExpertsKey)
                ? config.number(numExpertsKey)
                : config.number("num_local_experts");
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
