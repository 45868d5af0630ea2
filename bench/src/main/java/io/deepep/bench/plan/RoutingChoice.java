package io.deepep.bench.plan;

import io.deepep.bench.routing.RecordedRouting;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import java.util.Objects;
import picocli.CommandLine.Option;

/** How tokens come to their experts: by a gate, or as recorded. */
final class RoutingChoice {
    private static final double ZIPF_EXPONENT = 1;
    private static final int DEFAULT_GROUPS = 8;
    private static final int DEFAULT_TOPK_GROUPS = 4;

    @Option(
            names = "--routing",
            paramLabel = "NAME|FILE",
            description =
                    "uniform, zipf (few popular experts), group-limited (DeepSeek's gate), or recorded top-k indices, .npy or"
                            + " .safetensors: [T,K], split among the ranks, or [R,T,K] (default: ${DEFAULT-VALUE}).")
    private String routing = "uniform";

    @Option(
            names = "--num-groups",
            paramLabel = "G",
            description =
                    "Groups that experts form, with group-limited (default: "
                            + DEFAULT_GROUPS
                            + ").")
    private Integer numGroups;

    @Option(
            names = "--num-topk-groups",
            paramLabel = "G",
            description =
                    "Groups that a token may use, with group-limited (default: "
                            + DEFAULT_TOPK_GROUPS
                            + ").")
    private Integer numTopkGroups;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of the simulation (default: ${DEFAULT-VALUE}).")
    private long seed;

    /**
     * The gate, or null where a file is to be read.
     *
     * @throws UsageException if groups are given for a routing that has none
     */
    Gate gate() {
        boolean hasGroups = numGroups != null || numTopkGroups != null;
        if (hasGroups && !routing.equals("group-limited")) {
            throw new UsageException(
                    "--num-groups and --num-topk-groups do not go with --routing="
                            + routing
                            + "; use --routing group-limited");
        }
        return switch (routing) {
            case "uniform" -> new Gate.Uniform();
            case "zipf" -> new Gate.Zipf(ZIPF_EXPONENT);
            case "group-limited" ->
                    new Gate.GroupLimited(
                            Objects.requireNonNullElse(numGroups, DEFAULT_GROUPS),
                            Objects.requireNonNullElse(numTopkGroups, DEFAULT_TOPK_GROUPS),
                            false);
            default -> null;
        };
    }

    /**
     * The file.
     *
     * @throws UsageException if it cannot be read
     */
    RecordedRouting recorded() {
        if (!routing.endsWith(".npy") && !routing.endsWith(".safetensors")) {
            throw new UsageException(
                    "--routing="
                            + routing
                            + " is not uniform, zipf, group-limited or a .npy or .safetensors file");
        }
        return RecordedRouting.read(Path.of(routing), null);
    }

    long seed() {
        return seed;
    }

    /** Its name in tables and records. */
    String describe() {
        Gate gate = gate();
        return gate == null ? Path.of(routing).getFileName().toString() : describe(gate);
    }

    /** A gate's name in tables and records. */
    static String describe(Gate gate) {
        return switch (gate) {
            case Gate.Uniform ignored -> "uniform";
            case Gate.Zipf zipf -> "zipf " + zipf.exponent();
            case Gate.GroupLimited limited ->
                    "group-limited " + limited.numTopkGroups() + " of " + limited.numGroups();
            case Gate.AllToOne one -> "all to expert " + one.expert();
        };
    }
}
