package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import org.junit.jupiter.api.Test;

class StartCostTest {
    private static final Shape SHAPE = new Shape(4096, 7168, 8, 256);

    private static StartCost cost(int nodes) {
        return StartCost.of(new EpTopology(0, 8 * nodes, 8), SHAPE);
    }

    @Test
    void queuesGrowWithTheOtherNodes() {
        assertThat(cost(2).numQps()).isEqualTo(cost(2).numQpsPerPe());
        assertThat(cost(32).numQps()).isEqualTo(31 * cost(2).numQps());
        assertThat(cost(32).queueBytes()).isEqualTo(31 * cost(32).queueBytesPerPe());
        assertThat(cost(32).heapBytes()).isGreaterThanOrEqualTo(cost(32).buffers().rdma());
    }

    /** Seen of two PEs: 17 gathers and 12 barriers; IBGDA gathers and exchanges once more. */
    @Test
    void twoPesSendAMessageForEachCall() {
        assertThat(cost(2).messages()).isEqualTo(4 + 17 + 12 + 2);
        assertThat(cost(3).messages()).isEqualTo(4 + 2 * 17 + 2 * 12 + 2 * 2);
    }

    /** Without NVSHMEM the queue pairs are as many, and a rank sends ten messages to each other. */
    @Test
    void withoutNvshmem() {
        for (int nodes : new int[] {2, 3, 32, 256}) {
            StartCost cost = cost(nodes);
            assertThat(cost.ibgda().numQueues()).isEqualTo((int) cost.numQps());
            assertThat(cost.ibgda().memoryBytes()).isGreaterThan(cost.queueBytes());
            assertThat(cost.ibgda().messages()).isEqualTo(10L * (8 * nodes - 1));
        }
    }
}
