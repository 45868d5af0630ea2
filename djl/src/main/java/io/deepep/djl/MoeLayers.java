package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.LambdaBlock;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.gate.DeepSeekV3Gate;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.io.IOException;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * The mixture-of-experts layers of a Hugging Face checkpoint. {@code config.json} tells which
 * layers have experts, how they are selected, and how the tensors are named. Supports Mixtral,
 * Qwen2-MoE, Qwen3-MoE, DeepSeek-V2, V3 and R1, GLM-4.5 and gpt-oss.
 */
public final class MoeLayers {
    private final CheckpointConfig config;
    private final MoeFamily family;
    private final int hidden;
    private final int intermediate;
    private final TopkRule rule;

    private MoeLayers(CheckpointConfig config) {
        this.config = config;
        family = MoeFamily.of(config);
        requireSilu();
        hidden = config.number("hidden_size");
        intermediate = config.number(family.intermediateKey);
        rule =
                TopkRule.of(family.numExperts(config), config.number("num_experts_per_tok"))
                        .withNormalized(config.flag("norm_topk_prob", false))
                        .withScalingFactor((float) config.decimal("routed_scaling_factor", 1));
    }

    /**
     * Reads the layers of a model.
     *
     * @throws IllegalArgumentException if the model is of another family, its activation is not
     *     SiLU, or a number is missing
     */
    public static MoeLayers of(CheckpointConfig config) {
        return new MoeLayers(config);
    }

    /** gpt-oss has an activation of its own, whatever its configuration says. */
    private void requireSilu() {
        String activation = config.text("hidden_act", "silu");
        if (family != MoeFamily.GPT_OSS && !activation.equals("silu")) {
            throw new IllegalArgumentException(
                    config + ": hidden_act=" + activation + " is not silu");
        }
    }

    /** The numbers of experts, and how weights are computed from scores. */
    public TopkRule rule() {
        return rule;
    }

    /** The hidden size. */
    public int hidden() {
        return hidden;
    }

    /**
     * The limits of a buffer for prefill, in which a rank dispatches up to {@code maxTokens} tokens
     * at once. The hidden size may be larger than the model's, see {@link
     * ExpertExchange#paddedHidden}.
     */
    public NormalLimits normalLimits(int maxTokens) {
        return NormalLimits.of(
                maxTokens, ExpertExchange.paddedHidden(hidden), rule.numTopk(), rule.numExperts());
    }

    /**
     * The limits of a buffer for decoding, in which a rank dispatches up to {@code maxTokens}
     * tokens at once. Empty if low-latency mode does not support so many. The hidden size is that
     * of {@link #normalLimits}.
     */
    public Optional<LowLatencyLimits> lowLatencyLimits(int maxTokens) {
        return maxTokens <= LowLatencyLimits.MAX_TOKENS
                ? Optional.of(
                        new LowLatencyLimits(
                                maxTokens,
                                ExpertExchange.paddedHidden(hidden),
                                rule.numTopk(),
                                rule.numExperts()))
                : Optional.empty();
    }

    /** Whether a layer has experts; the others are dense. */
    public boolean isSparse(int layer) {
        return switch (family) {
            case QWEN2_MOE, QWEN3_MOE ->
                    !config.numbers("mlp_only_layers").contains(layer)
                            && (layer + 1) % step("decoder_sparse_step") == 0;
            case DEEPSEEK_V2, DEEPSEEK_V3, GLM4_MOE ->
                    layer >= config.number("first_k_dense_replace", 0)
                            && layer % step("moe_layer_freq") == 0;
            case MIXTRAL, GPT_OSS -> true;
        };
    }

    private int step(String key) {
        return config.has(key) ? config.number(key) : 1;
    }

    /**
     * Loads a layer: the gate, the shared expert, and only this rank's experts.
     *
     * @param decoderLayer the weights under {@code model.layers.N}
     * @throws IllegalArgumentException if a tensor is missing, or has a shape other than {@code
     *     config.json} says; it is named
     */
    public ExpertParallelMoE load(Weights decoderLayer, ExpertExchange exchange)
            throws IOException {
        Weights weights = decoderLayer.at(family.layer);
        int numLocal = rule.numExperts() / exchange.topology().numRanks();
        ExpertGate gate = gate();
        gate.prepare(hidden);
        weights.load(gate, family.gate());
        return ExpertParallelMoE.builder(exchange, rule.numExperts())
                .gate(gate)
                .localExperts(
                        new ExpertWeights(
                                        family,
                                        numLocal,
                                        hidden,
                                        intermediate,
                                        (float) config.decimal("swiglu_limit", 7),
                                        (float) config.decimal("swiglu_alpha", 1.702))
                                .load(weights.at("experts"), exchange.topology().rank() * numLocal))
                .sharedExpert(sharedExpert(weights))
                .build();
    }

    private ExpertGate gate() {
        int numGroups = config.number("n_group", 1);
        int numTopkGroups = config.number("topk_group", 1);
        return switch (family) {
            case DEEPSEEK_V3, GLM4_MOE -> new DeepSeekV3Gate(rule, numGroups, numTopkGroups);
            case DEEPSEEK_V2 ->
                    switch (config.text("topk_method", "greedy")) {
                        case "greedy" -> new SoftmaxGate(rule);
                        case "group_limited_greedy" ->
                                new SoftmaxGate(rule, numGroups, numTopkGroups, false);
                        default ->
                                throw new IllegalArgumentException(
                                        "%s: topk_method=%s is neither greedy nor group_limited_greedy"
                                                .formatted(config, config.text("topk_method", "")));
                    };
            case GPT_OSS -> new SoftmaxGate(rule, 1, 1, true);
            case MIXTRAL, QWEN2_MOE, QWEN3_MOE -> new SoftmaxGate(rule);
        };
    }

    /** Null if there is none. */
    private Block sharedExpert(Weights weights) throws IOException {
        if (family == MoeFamily.QWEN2_MOE) {
            int size = config.number("shared_expert_intermediate_size");
            SwiGlu expert = SwiGlu.load(weights.at(family.sharedExpert), hidden, size);
            Projection gate = weights.projection("shared_expert_gate", 1, hidden);
            return block(x -> expert.apply(x).mul(Activation.sigmoid(gate.apply(x))));
        }
        int number = config.number("n_shared_experts", 0);
        if (family.sharedExpert == null || number == 0) {
            return null;
        }
        SwiGlu expert =
                SwiGlu.load(weights.at(family.sharedExpert), hidden, (long) number * intermediate);
        return block(expert::apply);
    }

    private static Block block(UnaryOperator<NDArray> function) {
        return new LambdaBlock(inputs -> new NDList(function.apply(inputs.singletonOrThrow())));
    }
}
