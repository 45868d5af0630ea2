package io.deepep.bench.plan;

import io.deepep.bench.GateOptions;
import io.deepep.bench.GateOptions.Distribution;
import io.deepep.bench.routing.RecordedRouting;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** How tokens come to their experts: by a gate, or as recorded. */
final class RoutingChoice {
    @Option(
            names = "--routing",
            paramLabel = "NAME|FILE",
            description =
                    "uniform, zipf (few popular experts), group-limited (DeepSeek's gate), or a .npy"
                            + " or .safetensors file of recorded top-k indices: [T,K], divided among"
                            + " the ranks, or [R,T,K] (default: ${DEFAULT-VALUE}).")
    private String routing = "uniform";

    @Mixin private GateOptions gate = new GateOptions();

    /**
     * The gate, or null where a file is to be read.
     *
     * @throws UsageException if groups are given for a routing that has none
     */
    Gate gate() {
        for (Distribution each : Distribution.values()) {
            if (each.toString().equals(routing)) {
                return gate.gate("--routing", each);
            }
        }
        gate.requireNoGroups("--routing", routing);
        return null;
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
        return gate.seed();
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
