package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.bench.run.LaunchedGroup;
import picocli.CommandLine.Option;

/** How many ranks there are, and on how many nodes. */
interface GroupOptions {
    int nodes();

    int ranksPerNode();

    /** One node. */
    final class OneNode implements GroupOptions {
        @Option(
                names = {"--ranks", "--ranks-per-node"},
                paramLabel = "N",
                description = "Ranks, 1 to 8 (default: those that a launcher started, else 8).")
        private Integer ranks;

        @Override
        public int nodes() {
            return 1;
        }

        @Override
        public int ranksPerNode() {
            return ranks != null ? ranks : LaunchedGroup.size().orElse(EpTopology.MAX_NVL_RANKS);
        }
    }

    /** Several nodes. */
    final class SeveralNodes implements GroupOptions {
        @Option(
                names = "--nodes",
                paramLabel = "N",
                description = "Nodes (default: ${DEFAULT-VALUE}).")
        private int nodes = 2;

        @Option(
                names = "--ranks-per-node",
                paramLabel = "N",
                description = "Ranks on each node, 1 to 8 (default: ${DEFAULT-VALUE}).")
        private int ranksPerNode = 8;

        @Override
        public int nodes() {
            return nodes;
        }

        @Override
        public int ranksPerNode() {
            return ranksPerNode;
        }
    }

    /** One node unless told otherwise. */
    final class AnyNodes implements GroupOptions {
        @Option(
                names = "--nodes",
                paramLabel = "N",
                description = "Nodes (default: ${DEFAULT-VALUE}).")
        private int nodes = 1;

        @Option(
                names = {"--ranks-per-node", "--ranks"},
                paramLabel = "N",
                description =
                        "Ranks on each node, 1 to 8 (default: those that a launcher started, else 8).")
        private Integer ranksPerNode;

        @Override
        public int nodes() {
            return nodes;
        }

        @Override
        public int ranksPerNode() {
            return ranksPerNode != null
                    ? ranksPerNode
                    : LaunchedGroup.size()
                            .map(size -> Math.ceilDiv(size, nodes))
                            .orElse(EpTopology.MAX_NVL_RANKS);
        }
    }
}
