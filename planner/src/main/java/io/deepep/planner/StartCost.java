package io.deepep.planner;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.buffer.memory.IbgdaStart;
import io.deepep.buffer.memory.NvshmemQueues;

/**
 * What a rank needs to start in normal mode: with NVSHMEM over IBGDA, where its world is its rail,
 * one PE per node; and with queue pairs that the library makes itself.
 *
 * @param topology of the cluster
 * @param numQpsPerPe queue pairs to each PE
 * @param qpDepth entries of each
 * @param queueBytesPerPe GPU memory of these queues, in bytes
 * @param buffers of a rank
 * @param ibgda the network without NVSHMEM
 */
public record StartCost(
        EpTopology topology,
        int numQpsPerPe,
        int qpDepth,
        long queueBytesPerPe,
        BufferBytes buffers,
        OwnQueues ibgda) {
    /** NVSHMEM takes device memory for its heap in such pieces. */
    private static final long HEAP_PIECE = 512L << 20;

    /**
     * Collective calls of a start of NVSHMEM 3.4.5 as its log shows them (two PEs on one GPU,
     * without a network), and those that IBGDA adds: a gather of one handle per shared target, an
     * exchange of one per queue pair.
     */
    private static final int GATHERS = 17 + 1;

    private static final int BARRIERS = 12;

    /** What these gathers bring of each PE. */
    private static final long GATHERED_BYTES = 1191 + 2 * 56;

    private static final long QP_HANDLE_BYTES = 24;

    /** To the rank that made the unique id, and back: its version, its address, the next's. */
    private static final int MESSAGES_WITH_ROOT = 4;

    /**
     * What the network needs without NVSHMEM.
     *
     * @param numQueues queue pairs that a rank makes and connects
     * @param memoryBytes of queues and tables
     * @param messages that a rank sends
     * @param messageBytes of them all, at most
     * @param rounds in which it sends them; it waits for all others after each
     */
    public record OwnQueues(
            int numQueues, long memoryBytes, long messages, long messageBytes, int rounds) {
        private static OwnQueues of(IbgdaStart start) {
            return new OwnQueues(
                    start.numQueues(),
                    start.memoryBytes(),
                    start.messages(),
                    start.messageBytes(),
                    IbgdaStart.GATHERS);
        }
    }

    /**
     * The cost on a cluster.
     *
     * @param shape of the model; a rank has room for as many rows as it receives of evenly spread
     *     tokens
     */
    public static StartCost of(EpTopology topology, Shape shape) {
        Config config = WireFormat.configFor(topology);
        NvshmemQueues queues = NvshmemQueues.normal(config);
        return new StartCost(
                topology,
                queues.numQpsPerPe(),
                queues.qpDepth(),
                queues.bytesPerPe(),
                BufferBytes.normal(shape, topology, shape.numTokens() * shape.numTopk()),
                OwnQueues.of(IbgdaStart.normal(topology, config)));
    }

    /** Other PEs of the world. */
    public int numPeers() {
        return topology.numRdmaRanks() - 1;
    }

    /** Queue pairs that a rank makes and connects. */
    public long numQps() {
        return (long) numPeers() * numQpsPerPe;
    }

    /** GPU memory of the queues. */
    public long queueBytes() {
        return numPeers() * queueBytesPerPe;
    }

    /** GPU memory of the symmetric heap. */
    public long heapBytes() {
        return Math.ceilDiv(buffers.rdma(), HEAP_PIECE) * HEAP_PIECE;
    }

    /**
     * Messages that a rank sends: gathers go round a ring, barriers double their distance, the
     * exchange goes to each.
     */
    public long messages() {
        int rounds = Integer.SIZE - Integer.numberOfLeadingZeros(numPeers());
        return MESSAGES_WITH_ROOT + (GATHERS + 1L) * numPeers() + (long) BARRIERS * rounds;
    }

    /** Their bytes. */
    public long messageBytes() {
        return numPeers() * GATHERED_BYTES + numQps() * QP_HANDLE_BYTES;
    }
}
