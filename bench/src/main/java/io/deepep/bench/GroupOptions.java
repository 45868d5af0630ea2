package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import picocli.CommandLine.Option;

/** How many ranks there are, on one node. */
class GroupOptions {
    /** Ranks of a node unless the user or a launcher says otherwise. */
    private static final int USUAL_RANKS = 8;

    @Option(
            names = {"--ranks-per-node", "--ranks"},
            paramLabel = "N",
            description =
                    "Ranks on each node, 1 to "
                            + EpTopology.MAX_NVL_RANKS
                            + " (default: those that a launcher started, else "
                            + USUAL_RANKS
                            + ").")
    private Integer ranksPerNode;

    int nodes() {
        return 1;
    }

    /**
     * The group; the rank does not matter.
     *
     * @throws UsageException if the library has no such groups
     */
    final EpTopology topology() {
        int nodes = nodes();
        UsageException.requireIn("--nodes", nodes, 1, GroupLimits.MAX_RANKS);
        int ofNode =
                ranksPerNode != null
                        ? ranksPerNode
                        : LaunchedGroup.size()
                                .map(size -> Math.ceilDiv(size, nodes))
                                .orElse(USUAL_RANKS);
        // Both names are the same option.
        String option = nodes == 1 ? "--ranks" : "--ranks-per-node";
        UsageException.requireIn(option, ofNode, 1, EpTopology.MAX_NVL_RANKS);
        int ranks = nodes * ofNode;
        if (ranks > GroupLimits.MAX_RANKS) {
            throw new UsageException(
                    "%s nodes x %s ranks exceed %s ranks; lower --nodes or --ranks-per-node"
                            .formatted(nodes, ofNode, GroupLimits.MAX_RANKS));
        }
        return new EpTopology(0, ranks, ofNode);
    }

    /** How many ranks there are, on as many nodes as the user says. */
    static final class AnyNodes extends GroupOptions {
        @Option(
                names = "--nodes",
                paramLabel = "N",
                description = "Nodes (default: ${DEFAULT-VALUE}).")
        private int nodes;

        /** {@code nodes} nodes unless the user says otherwise. */
        AnyNodes(int nodes) {
            this.nodes = nodes;
        }

        @Override
        int nodes() {
            return nodes;
        }
    }
}
