package io.deepep.bench.plan;

import io.deepep.EpTopology;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

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

    private StartTable() {}

    static List<String> markdown() {
        List<String> lines = new ArrayList<>();
        lines.add(
                "| nodes | ranks | queue pairs of a rank | their depth | their memory MiB | NVL buffer GiB | RDMA buffer GiB"
                        + " | heap GiB | messages of a rank | KiB |");
        lines.add("|---|---|---|---|---|---|---|---|---|---|");
        for (int nodes : NODES) {
            int numRanks = nodes * EpTopology.MAX_NVL_RANKS;
            Shape shape = new Shape(TOKENS, HIDDEN, TOPK, Math.max(EXPERTS, numRanks));
            EpTopology topology = new EpTopology(0, numRanks, EpTopology.MAX_NVL_RANKS);
            lines.add(row(StartCost.of(topology, shape)));
        }
        return lines;
    }

    private static String row(StartCost cost) {
        return String.format(
                Locale.ROOT,
                "| %d | %d | %d | %d | %.1f | %.2f | %.2f | %.1f | %d | %.1f |",
                cost.topology().numRdmaRanks(),
                cost.topology().numRanks(),
                cost.numQps(),
                cost.queues().qpDepth(),
                cost.queueBytes() / MIB,
                cost.buffers().nvlForRouting() / GIB,
                cost.buffers().rdma() / GIB,
                cost.heapBytes() / GIB,
                cost.messages(),
                cost.messageBytes() / KIB);
    }
}
