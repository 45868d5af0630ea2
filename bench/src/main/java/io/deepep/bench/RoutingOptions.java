package io.deepep.bench;

import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** How tokens come to their experts: drawn at random, or recorded. */
final class RoutingOptions {
    /** How random routings are drawn. */
    enum Distribution {
        /** All experts alike. */
        UNIFORM,
        /** DeepSeek's gate: the best groups of experts, in these the best experts. */
        GROUP_LIMITED,
        /** Few popular experts. */
        ZIPF;

        @Override
        public String toString() {
            return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
        }
    }

    @Option(
            names = "--distribution",
            paramLabel = "NAME",
            converter = DistributionConverter.class,
            description =
                    "Random routing: uniform, group-limited (DeepSeek's gate) or zipf (few popular experts)."
                            + " Default: uniform, or group-limited with --num-topk-groups.")
    private Distribution distribution;

    @Option(
            names = "--num-topk-groups",
            paramLabel = "G",
            description =
                    "Groups of experts that a token may use, with group-limited (default: 4).")
    private Integer numTopkGroups;

    @Option(
            names = "--num-groups",
            paramLabel = "G",
            description =
                    "Groups that experts form, with group-limited (default: ${DEFAULT-VALUE}).")
    private int numGroups = 8;

    @Option(
            names = "--masked-ratio",
            paramLabel = "P",
            description = "Chance that a selection is masked, 0 to 1 (default: ${DEFAULT-VALUE}).")
    double maskedRatio;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of everything random (default: ${DEFAULT-VALUE}).")
    long seed;

    @Option(
            names = "--routing",
            paramLabel = "FILE",
            description =
                    "Replays recorded top-k indices, .npy or .safetensors (topk_idx, topk_weights):"
                            + " [T,K], split among the ranks, or [R,T,K]; integers, -1 for no selection.")
    Path routing;

    @Option(
            names = "--routing-weights",
            paramLabel = "FILE",
            description =
                    "Weights that go with --routing FILE.npy, of the same shape (default: 1/K each).")
    Path routingWeights;

    /** The gate of random routings. */
    Gate gate() {
        Distribution chosen =
                distribution != null
                        ? distribution
                        : numTopkGroups != null ? Distribution.GROUP_LIMITED : Distribution.UNIFORM;
        if (numTopkGroups != null && chosen != Distribution.GROUP_LIMITED) {
            throw new UsageException(
                    "--num-topk-groups="
                            + numTopkGroups
                            + " does not go with --distribution="
                            + chosen
                            + "; use --distribution group-limited");
        }
        return switch (chosen) {
            case UNIFORM -> new Gate.Uniform();
            case GROUP_LIMITED ->
                    new Gate.GroupLimited(
                            numGroups, numTopkGroups == null ? 4 : numTopkGroups, false);
            case ZIPF -> new Gate.Zipf(1.0);
        };
    }

    void requireNoRandomOptions() {
        if (distribution != null || numTopkGroups != null || maskedRatio != 0) {
            throw new UsageException(
                    "--routing="
                            + routing
                            + " does not go with --distribution, --num-topk-groups or --masked-ratio;"
                            + " the file says it all");
        }
    }
}
