package io.deepep.doctor;

import java.util.List;

/**
 * What a network card reports, and what of it a GPU can drive.
 *
 * @param hca the RDMA device, for example {@code mlx5_0}
 * @param problem why it cannot be opened, in which case nothing else is known; empty if it can
 * @param firmware version of its firmware
 * @param maxQueuePairs most queue pairs of all processes together
 * @param maxQueuePairEntries most work requests of a queue pair
 * @param relaxedOrdering whether writes may overtake each other on PCI
 * @param lacks what it lacks for kernels to drive it
 * @param ports its ports
 * @param trial the result of a trial with a GPU
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
     * @param name its name, such as {@code mlx5_0:1}
     * @param active whether its link is up
     * @param mtu most bytes of a packet
     * @param gids its addresses
     */
    public record Port(String name, boolean active, int mtu, List<String> gids) {
        /** Copies the list. */
        public Port {
            gids = List.copyOf(gids);
        }
    }

    /**
     * The result of a trial of the card with a GPU. Each of the last four texts is empty if it
     * works, and otherwise says why not.
     *
     * @param gpu the GPU of the trial, such as {@code cuda:0}; empty if there was no trial, in
     *     which case nothing else is known
     * @param problem why there was no trial
     * @param dmaBuf whether the card reaches memory of the GPU through a dma-buf
     * @param peerMem whether the card reaches memory of the GPU through the module nvidia-peermem
     * @param queues whether queues can be in memory of the GPU
     * @param doorbells whether the GPU can ring the card's doorbells
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

        /** Why the card reaches no memory of the GPU; empty if it does, in either way. */
        String memoryProblem() {
            return dmaBuf.isEmpty() || peerMem.isEmpty()
                    ? ""
                    : "dma-buf: %s; nvidia-peermem: %s".formatted(dmaBuf, peerMem);
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
}
