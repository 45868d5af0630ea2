package io.deepep.bench.plan;

import io.deepep.EpTopology;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.MarkdownTable;
import io.deepep.planner.Shape;
import io.deepep.planner.StartCost;
import java.util.List;

/** What starting costs, by number of nodes, as the Markdown table of docs/networks.md. */
final class StartTable {
    private static final List<Integer> NODES = List.of(2, 4, 8, 16, 32, 64, 128, 256);
    private static final int TOKENS = 4096;
    private static final int HIDDEN = 7168;
    private static final int TOPK = 8;
    private static final int EXPERTS = 256;
    private static final double MIB = 1 << 20;
    private static final double GIB = 1 << 30;
    private static final double KIB = 1 << 10;

    private static final List<String> HEAD =
            List.of(
                    "nodes",
                    "ranks",
                    "queue pairs of a rank",
                    "their depth",
                    "their memory MiB",
                    "NVL buffer GiB",
                    "RDMA buffer GiB",
                    "heap GiB",
                    "messages of a rank",
                    "KiB",
                    "IBGDA: memory MiB",
                    "messages",
                    "KiB",
                    "rounds");

    private static final int RANKS_PER_NODE = 8;

    private StartTable() {}

    static String markdown() {
        MarkdownTable table = new MarkdownTable(HEAD.size(), HEAD);
        for (int nodes : NODES) {
            int numRanks = nodes * RANKS_PER_NODE;
            Shape shape = new Shape(TOKENS, HIDDEN, TOPK, Math.max(EXPERTS, numRanks));
            EpTopology topology = new EpTopology(0, numRanks, RANKS_PER_NODE);
            table.row(row(StartCost.of(topology, shape)));
        }
        return table.toString();
    }

    private static String[] row(StartCost cost) {
        return new String[] {
            "" + cost.topology().numRdmaRanks(),
            "" + cost.topology().numRanks(),
            "" + cost.numQps(),
            "" + cost.qpDepth(),
            Decimals.of("%.1f", cost.queueBytes() / MIB),
            Decimals.of("%.2f", cost.buffers().nvlForRouting() / GIB),
            Decimals.of("%.2f", cost.buffers().rdma() / GIB),
            Decimals.of("%.1f", cost.heapBytes() / GIB),
            "" + cost.messages(),
            Decimals.of("%.1f", cost.messageBytes() / KIB),
            Decimals.of("%.1f", cost.ibgda().memoryBytes() / MIB),
            "" + cost.ibgda().messages(),
            Decimals.of("%.1f", cost.ibgda().messageBytes() / KIB),
            "" + cost.ibgda().rounds()
        };
    }
}
