package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import picocli.CommandLine.Option;

/** How many ranks there are, and on how many nodes. */
interface GroupOptions {
    int nodes();

    int ranksPerNode();

    /** Ranks of a node unless the user or a launcher says otherwise. */
    int USUAL_RANKS = 8;

    /**
     * The group; the rank does not matter.
     *
     * @throws UsageException if the library has no such groups
     */
    default EpTopology topology() {
        // Both names are the same option.
        String ranksOption = nodes() == 1 ? "--ranks" : "--ranks-per-node";
        UsageException.requireIn("--nodes", nodes(), 1, GroupLimits.MAX_RANKS);
        UsageException.requireIn(ranksOption, ranksPerNode(), 1, EpTopology.MAX_NVL_RANKS);
        int ranks = nodes() * ranksPerNode();
        if (ranks > GroupLimits.MAX_RANKS) {
            throw new UsageException(
                    "%s nodes x %s ranks exceed %s ranks; lower --nodes or --ranks-per-node"
                            .formatted(nodes(), ranksPerNode(), GroupLimits.MAX_RANKS));
        }
        return new EpTopology(0, ranks, ranksPerNode());
    }

    /** One node. */
    final class OneNode implements GroupOptions {
        @Option(
                names = {"--ranks", "--ranks-per-node"},
                paramLabel = "N",
                description =
                        "Ranks, 1 to "
                                + EpTopology.MAX_NVL_RANKS
                                + " (default: those that a launcher started, else 8).")
        private Integer ranks;

        @Override
        public int nodes() {
            return 1;
        }

        @Override
        public int ranksPerNode() {
            return ranks != null ? ranks : LaunchedGroup.size().orElse(USUAL_RANKS);
        }
    }

    /** As many nodes as the user says. */
    final class AnyNodes implements GroupOptions {
        @Option(
                names = "--nodes",
                paramLabel = "N",
                description = "Nodes (default: ${DEFAULT-VALUE}).")
        private int nodes;

        @Option(
                names = {"--ranks-per-node", "--ranks"},
                paramLabel = "N",
                description =
                        "Ranks on each node, 1 to "
                                + EpTopology.MAX_NVL_RANKS
                                + " (default: those that a launcher started, else 8).")
        private Integer ranksPerNode;

        /** One node unless the user says otherwise. */
        AnyNodes() {
            this(1);
        }

        /** {@code nodes} nodes unless the user says otherwise. */
        AnyNodes(int nodes) {
            this.nodes = nodes;
        }

        @Override
        public int nodes() {
            return nodes;
        }

        @Override
        public int ranksPerNode() {
            return ranksPerNode != null
                    ? ranksPerNode
                    : LaunchedGroup.size()
                            .map(size -> Math.ceilDiv(size, Math.max(nodes, 1)))
                            .orElse(USUAL_RANKS);
        }
    }
}
