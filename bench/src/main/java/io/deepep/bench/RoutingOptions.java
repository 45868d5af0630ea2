package io.deepep.bench;

import io.deepep.bench.GateOptions.Distribution;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import java.util.Objects;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** How tokens come to their experts: drawn at random, or recorded. */
final class RoutingOptions {
    @Option(
            names = "--distribution",
            paramLabel = "NAME",
            description =
                    "Random routing: uniform, group-limited (DeepSeek's gate) or zipf (few popular"
                            + " experts) (default: uniform, or group-limited if groups are given).")
    private Distribution distribution;

    @Mixin private GateOptions gate = new GateOptions();

    @Option(
            names = "--masked-ratio",
            paramLabel = "P",
            description =
                    "Probability that a selection is masked, 0 to 1 (default: ${DEFAULT-VALUE}).")
    double maskedRatio;

    @Option(
            names = "--routing",
            paramLabel = "FILE",
            description =
                    "Replays recorded top-k indices from a .npy or .safetensors file (topk_idx,"
                            + " topk_weights): integers [T,K], divided among the ranks, or [R,T,K];"
                            + " -1 for no selection.")
    Path routing;

    @Option(
            names = "--routing-weights",
            paramLabel = "FILE",
            description = "Weights for --routing FILE.npy, of the same shape (default: 1/K each).")
    Path routingWeights;

    /** The gate of random routings. */
    Gate gate() {
        Distribution usual = gate.hasGroups() ? Distribution.GROUP_LIMITED : Distribution.UNIFORM;
        return gate.gate("--distribution", Objects.requireNonNullElse(distribution, usual));
    }

    /** Seed of everything random. */
    long seed() {
        return gate.seed();
    }

    void requireNoRandomOptions() {
        if (distribution != null || gate.hasGroups() || maskedRatio != 0) {
            throw new UsageException(
                    ("--routing=%s does not go with --distribution, --num-groups, --num-topk-groups or"
                                    + " --masked-ratio; the file gives the whole routing")
                            .formatted(routing));
        }
    }
}
