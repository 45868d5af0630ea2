package io.deepep.buffer.parity;

import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * The cases whose vectors Java writes: inputs of the testkit, which are made to be hard, without
 * outputs.
 */
final class JavaVectors {
    private static final int BIAS = 1000;

    private JavaVectors() {}

    /** All cases by name. */
    static Map<String, ParityCase> cases() {
        Map<String, ParityCase> cases = new TreeMap<>();
        cases.put("normal-bf16", normal(ragged(4, 4, 8, 3, 1), 4, 136, DType.BF16, 1, false));
        cases.put("normal-fp8", normal(ragged(4, 3, 12, 4, 2), 4, 256, DType.FP8_E4M3, 4, false));
        cases.put("normal-expanded", normal(ragged(2, 4, 6, 3, 3), 2, 128, DType.BF16, 4, true));
        cases.put("normal-two-nodes", normal(ragged(4, 4, 8, 4, 4), 2, 128, DType.BF16, 1, false));
        cases.put(
                "low-latency-bf16",
                lowLatency(ragged(4, 4, 8, 3, 5), 4, 128, LowLatencyFormat.BF16, false));
        cases.put(
                "low-latency-fp8",
                lowLatency(ragged(2, 5, 4, 3, 61), 2, 640, LowLatencyFormat.FP8, false));
        cases.put(
                "low-latency-power-of-two",
                lowLatency(
                        ragged(2, 4, 4, 2, 7), 2, 512, LowLatencyFormat.FP8_POWER_OF_TWO, false));
        cases.put(
                "low-latency-ue8m0",
                lowLatency(ragged(3, 5, 6, 3, 83), 3, 640, LowLatencyFormat.FP8_UE8M0, false));
        cases.put(
                "low-latency-logfmt",
                lowLatency(ragged(2, 4, 4, 2, 9), 1, 256, LowLatencyFormat.FP8, true));
        ParityCase preReduced =
                lowLatency(ragged(4, 4, 8, 5, 10), 4, 128, LowLatencyFormat.BF16, false);
        preReduced.settings().put("pre_reduced", "true");
        cases.put("low-latency-pre-reduced", preReduced);
        return cases;
    }

    private static RoutingSpec ragged(int ranks, int tokens, int experts, int topk, long seed) {
        return RoutingSpec.of(ranks, tokens, experts, topk)
                .withMaskedShare(0.2)
                .withDuplicateShare(0.2)
                .withVaryingTokens(true)
                .withSeed(seed);
    }

    private static ParityCase normal(
            RoutingSpec spec,
            int ranksPerNode,
            int hidden,
            DType dtype,
            int expertAlignment,
            boolean expanded) {
        Routing routing = spec.generate();
        NormalOracle oracle = new NormalOracle(routing);
        Map<String, String> settings = settings("normal", spec, ranksPerNode, hidden);
        settings.put("expert_alignment", String.valueOf(expertAlignment));
        settings.put("num_worst_tokens", "0");
        settings.put("expanded", String.valueOf(expanded));
        List<Map<String, Tensor>> inputs = new ArrayList<>();
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            int numTokens = routing.numTokens(rank);
            Tokens tokens =
                    dtype == DType.FP8_E4M3
                            ? Tokens.fp8(rank, numTokens, hidden, spec.seed())
                            : Tokens.bf16(rank, numTokens, hidden, spec.seed());
            int rows =
                    expanded
                            ? oracle.expandedRows(rank, expertAlignment).size()
                            : oracle.rows(rank).size();
            Map<String, Tensor> given = inputs(routing, rank, tokens, rows, spec.seed());
            given.put("bias0", Tokens.expertOutputs(numTokens, hidden, spec.seed() + BIAS));
            inputs.add(given);
        }
        return new ParityCase(settings, inputs, List.of(), List.of());
    }

    private static ParityCase lowLatency(
            RoutingSpec spec,
            int ranksPerNode,
            int hidden,
            LowLatencyFormat format,
            boolean logFmt) {
        Routing routing = spec.generate();
        LowLatencyOracle oracle = new LowLatencyOracle(routing);
        Map<String, String> settings = settings("low_latency", spec, ranksPerNode, hidden);
        settings.put("format", format.name().toLowerCase(Locale.ROOT));
        settings.put("logfmt", String.valueOf(logFmt));
        settings.put("pre_reduced", "false");
        settings.put("absent", "");
        List<Map<String, Tensor>> inputs = new ArrayList<>();
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            Tokens tokens = Tokens.bf16(rank, routing.numTokens(rank), hidden, spec.seed());
            int rows = Arrays.stream(oracle.counts(rank)).sum();
            Map<String, Tensor> given = inputs(routing, rank, tokens, rows, spec.seed());
            given.put(
                    "cumulative_stats", HostTensors.allocate(DType.I32, routing.numLocalExperts()));
            inputs.add(given);
        }
        return new ParityCase(settings, inputs, List.of(), List.of());
    }

    private static Map<String, String> settings(
            String operation, RoutingSpec spec, int ranksPerNode, int hidden) {
        Map<String, String> settings = new TreeMap<>();
        settings.put("operation", operation);
        settings.put("num_ranks", String.valueOf(spec.numRanks()));
        settings.put("ranks_per_node", String.valueOf(ranksPerNode));
        settings.put("num_experts", String.valueOf(spec.numExperts()));
        settings.put("num_topk", String.valueOf(spec.numTopk()));
        settings.put("hidden", String.valueOf(hidden));
        settings.put("max_tokens", String.valueOf(spec.numTokens()));
        return settings;
    }

    private static Map<String, Tensor> inputs(
            Routing routing, int rank, Tokens tokens, int rows, long seed) {
        Map<String, Tensor> given = new TreeMap<>();
        given.put("x", tokens.x());
        if (tokens.scales() != null) {
            given.put("scales", tokens.scales());
        }
        given.put("topk_idx", routing.topkIdxTensor(rank));
        given.put("topk_weights", routing.weightsTensor(rank));
        int hidden = (int) tokens.x().size(1);
        given.put("expert_output", Tokens.expertOutputs(rows, hidden, seed + 77L * (rank + 1)));
        return given;
    }
}
