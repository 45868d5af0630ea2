package io.deepep.bench.plan;

import io.deepep.EpTopology;
import io.deepep.bench.text.Decimals;
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
                .text("nodes", cost -> cost.topology().numRdmaRanks())
                .text("ranks", cost -> cost.topology().numRanks())
                .text("queue pairs of a rank", cost -> cost.numQps())
                .text("their depth", cost -> cost.qpDepth())
                .text("their memory MiB", cost -> tenths(cost.queueBytes() / MIB))
                .text("NVL buffer GiB", cost -> hundredths(cost.buffers().nvlForRouting() / GIB))
                .text("RDMA buffer GiB", cost -> hundredths(cost.buffers().rdma() / GIB))
                .text("heap GiB", cost -> tenths(cost.heapBytes() / GIB))
                .text("messages of a rank", cost -> cost.messages())
                .text("KiB", cost -> tenths(cost.messageBytes() / KIB))
                .text("IBGDA: memory MiB", cost -> tenths(cost.ibgda().memoryBytes() / MIB))
                .text("messages", cost -> cost.ibgda().messages())
                .text("KiB", cost -> tenths(cost.ibgda().messageBytes() / KIB))
                .text("rounds", cost -> cost.ibgda().rounds())
                .markdown(NODES.stream().map(StartTable::cost).toList());
    }

    private static StartCost cost(int nodes) {
        int numRanks = nodes * RANKS_PER_NODE;
        return StartCost.of(
                new EpTopology(0, numRanks, RANKS_PER_NODE),
                new Shape(TOKENS, HIDDEN, TOPK, Math.max(EXPERTS, numRanks)));
    }

    private static String tenths(double value) {
        return Decimals.of("%.1f", value);
    }

    private static String hundredths(double value) {
        return Decimals.of("%.2f", value);
    }
}
