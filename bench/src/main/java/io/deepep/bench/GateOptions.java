package io.deepep.bench;

import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import io.deepep.testkit.routing.Gate;
import java.util.Objects;
import picocli.CommandLine.Option;

/** How random routings are drawn. */
public final class GateOptions {
    /** The ways. */
    public enum Distribution {
        /** All experts equally often. */
        UNIFORM,
        /** DeepSeek's gate: the best groups of experts, in these the best experts. */
        GROUP_LIMITED,
        /** Few popular experts. */
        ZIPF;

        @Override
        public String toString() {
            return Names.of(this);
        }
    }

    private static final int DEFAULT_GROUPS = 8;
    private static final int DEFAULT_TOPK_GROUPS = 4;

    @Option(
            names = "--num-groups",
            paramLabel = "G",
            description = "Groups of experts, for group-limited (default: " + DEFAULT_GROUPS + ").")
    private Integer numGroups;

    @Option(
            names = "--num-topk-groups",
            paramLabel = "G",
            description =
                    "Groups that a token may select experts from, for group-limited (default: "
                            + DEFAULT_TOPK_GROUPS
                            + ").")
    private Integer numTopkGroups;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of all random data (default: ${DEFAULT-VALUE}).")
    private long seed;

    /** Whether groups were given. */
    public boolean hasGroups() {
        return numGroups != null || numTopkGroups != null;
    }

    /** Seed of everything random. */
    public long seed() {
        return seed;
    }

    /**
     * The gate.
     *
     * @param option that named the distribution
     * @throws UsageException if groups are given for one that has none
     */
    public Gate gate(String option, Distribution distribution) {
        if (distribution != Distribution.GROUP_LIMITED) {
            requireNoGroups(option, distribution.toString());
        }
        return switch (distribution) {
            case UNIFORM -> new Gate.Uniform();
            case GROUP_LIMITED ->
                    new Gate.GroupLimited(
                            Objects.requireNonNullElse(numGroups, DEFAULT_GROUPS),
                            Objects.requireNonNullElse(numTopkGroups, DEFAULT_TOPK_GROUPS),
                            false);
            case ZIPF -> new Gate.Zipf(1);
        };
    }

    /** Refuses groups beside a routing that has none. */
    public void requireNoGroups(String option, String routing) {
        if (hasGroups()) {
            throw new UsageException(
                    "--num-groups and --num-topk-groups do not go with %s=%s; use %s group-limited"
                            .formatted(option, routing, option));
        }
    }
}
