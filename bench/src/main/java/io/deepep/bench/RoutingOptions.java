package io.deepep.bench;

import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import java.util.Objects;
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

    private static final int DEFAULT_GROUPS = 8;
    private static final int DEFAULT_TOPK_GROUPS = 4;

    @Option(
            names = "--distribution",
            paramLabel = "NAME",
            converter = DistributionConverter.class,
            description =
                    "Random routing: uniform, group-limited (DeepSeek's gate) or zipf (few popular experts)."
                            + " Default: uniform, or group-limited where groups are given.")
    private Distribution distribution;

    @Option(
            names = "--num-topk-groups",
            paramLabel = "G",
            description =
                    "Groups of experts that a token may use, with group-limited (default: "
                            + DEFAULT_TOPK_GROUPS
                            + ").")
    private Integer numTopkGroups;

    @Option(
            names = "--num-groups",
            paramLabel = "G",
            description =
                    "Groups that experts form, with group-limited (default: "
                            + DEFAULT_GROUPS
                            + ").")
    private Integer numGroups;

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
                        : hasGroups() ? Distribution.GROUP_LIMITED : Distribution.UNIFORM;
        if (hasGroups() && chosen != Distribution.GROUP_LIMITED) {
            throw new UsageException(
                    "--num-groups and --num-topk-groups do not go with --distribution="
                            + chosen
                            + "; use --distribution group-limited");
        }
        return switch (chosen) {
            case UNIFORM -> new Gate.Uniform();
            case GROUP_LIMITED ->
                    new Gate.GroupLimited(
                            Objects.requireNonNullElse(numGroups, DEFAULT_GROUPS),
                            Objects.requireNonNullElse(numTopkGroups, DEFAULT_TOPK_GROUPS),
                            false);
            case ZIPF -> new Gate.Zipf(1.0);
        };
    }

    private boolean hasGroups() {
        return numGroups != null || numTopkGroups != null;
    }

    void requireNoRandomOptions() {
        if (distribution != null || hasGroups() || maskedRatio != 0) {
            throw new UsageException(
                    "--routing="
                            + routing
                            + " does not go with --distribution, --num-groups, --num-topk-groups or --masked-ratio;"
                            + " the file says it all");
        }
    }
}
