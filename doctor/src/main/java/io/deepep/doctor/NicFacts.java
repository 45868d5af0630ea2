package io.deepep.doctor;

import java.util.List;

/**
 * What a network card says of itself, and what of it a GPU can drive.
 *
 * @param hca the RDMA device, for example {@code mlx5_0}
 * @param problem why it cannot be opened; empty if it can. Otherwise nothing else is known
 * @param firmware its version
 * @param maxQueuePairs of all processes together
 * @param maxQueuePairEntries work requests that a queue pair holds
 * @param relaxedOrdering whether writes may overtake each other on PCI
 * @param lacks what kernels that drive it need and it has not
 * @param ports its ports
 * @param trial what was tried with a GPU
 */
public record NicFacts(
        String hca,
        String problem,
        String firmware,
        long maxQueuePairs,
        long maxQueuePairEntries,
        boolean relaxedOrdering,
        List<String> lacks,
        List<Port> ports,
        Trial trial) {
    /** Copies the lists. */
    public NicFacts {
        lacks = List.copyOf(lacks);
        ports = List.copyOf(ports);
    }

    /**
     * A port.
     *
     * @param name as {@code mlx5_0:1}
     * @param active whether its link carries data
     * @param mtu bytes of a packet
     * @param gids its addresses
     */
    public record Port(String name, boolean active, int mtu, List<String> gids) {
        /** Copies the list. */
        public Port {
            gids = List.copyOf(gids);
        }
    }

    /**
     * What of the card the GPU can use. Each text is empty if it can, else says why not.
     *
     * @param gpu that it was tried with, as {@code cuda:0}; empty if it was not tried, and then
     *     nothing else is known
     * @param problem why it was not tried
     * @param dmaBuf the card reaches memory of the GPU by a dma-buf
     * @param peerMem the same through the module nvidia-peermem
     * @param queues queues lie in memory of the GPU
     * @param doorbells the GPU rings the card
     */
    public record Trial(
            String gpu,
            String problem,
            String dmaBuf,
            String peerMem,
            String queues,
            String doorbells) {
        static Trial none(String problem) {
            return new Trial("", problem, "", "", "", "");
        }

        boolean wasMade() {
            return !gpu.isEmpty();
        }

        boolean reachesMemory() {
            return dmaBuf.isEmpty() || peerMem.isEmpty();
        }
    }

    /** A card that cannot be opened. */
    static NicFacts unknown(String hca, String problem) {
        return new NicFacts(
                hca, problem, "", 0, 0, false, List.of(), List.of(), Trial.none("not opened"));
    }

    boolean isKnown() {
        return problem.isEmpty();
    }

    /** Whether kernels can drive it, as far as the card is concerned. */
    boolean isDrivable() {
        return isKnown() && lacks.isEmpty();
    }
}
