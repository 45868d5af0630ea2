package io.deepep.bench.plan;

import io.deepep.EpTopology;
import io.deepep.bench.text.TextTable;
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

    private static final int RANKS_PER_NODE = 8;

    private StartTable() {}

    static String markdown() {
        return new TextTable<StartCost>()
                .right("nodes", cost -> cost.topology().numRdmaRanks())
                .right("ranks", cost -> cost.topology().numRanks())
                .right("queue pairs of a rank", cost -> cost.numQps())
                .right("their depth", cost -> cost.qpDepth())
                .number("their memory MiB", "%.1f", cost -> cost.queueBytes() / MIB)
                .number("NVL buffer GiB", "%.2f", cost -> cost.buffers().nvlForRouting() / GIB)
                .number("RDMA buffer GiB", "%.2f", cost -> cost.buffers().rdma() / GIB)
                .number("heap GiB", "%.1f", cost -> cost.heapBytes() / GIB)
                .right("messages of a rank", cost -> cost.messages())
                .number("KiB", "%.1f", cost -> cost.messageBytes() / KIB)
                .number("IBGDA: memory MiB", "%.1f", cost -> cost.ibgda().memoryBytes() / MIB)
                .right("messages", cost -> cost.ibgda().messages())
                .number("KiB", "%.1f", cost -> cost.ibgda().messageBytes() / KIB)
                .right("rounds", cost -> cost.ibgda().rounds())
                .markdown(NODES.stream().map(StartTable::cost).toList());
    }

    private static StartCost cost(int nodes) {
        int numRanks = nodes * RANKS_PER_NODE;
        return StartCost.of(
                new EpTopology(0, numRanks, RANKS_PER_NODE),
                new Shape(TOKENS, HIDDEN, TOPK, Math.max(EXPERTS, numRanks)));
    }
}
