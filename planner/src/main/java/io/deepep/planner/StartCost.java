package io.deepep.planner;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.buffer.memory.IbgdaStart;
import io.deepep.buffer.memory.NvshmemQueues;

/**
 * What a rank needs to start normal mode, with NVSHMEM over IBGDA and with the library's own IBGDA.
 * With NVSHMEM, a rank's world is its rail, with one PE per node.
 *
 * @param topology the topology of the cluster
 * @param numQpsPerPe queue pairs to each PE
 * @param qpDepth entries of each queue pair
 * @param queueBytesPerPe GPU memory of the queues to each PE, in bytes
 * @param buffers the sizes of a rank's buffer
 * @param ibgda the needs of the library's own IBGDA
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
     * What the library's own IBGDA needs.
     *
     * @param numQueues queue pairs that a rank creates and connects
     * @param memoryBytes GPU memory of queues and tables, in bytes
     * @param messages messages that a rank sends
     * @param messageBytes their bytes together, at most
     * @param rounds rounds in which they are sent; the rank waits for all others after each
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
     * The cost of a start on a cluster.
     *
     * @param shape the shape of the model; the buffer has room for the rows that a rank receives if
     *     tokens are spread evenly
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

    /** Number of other PEs of the world. */
    public int numPeers() {
        return topology.numRdmaRanks() - 1;
    }

    /** Number of queue pairs that a rank creates and connects. */
    public long numQps() {
        return (long) numPeers() * numQpsPerPe;
    }

    /** GPU memory of the queues, in bytes. */
    public long queueBytes() {
        return numPeers() * queueBytesPerPe;
    }

    /** GPU memory of the symmetric heap, in bytes. */
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

    /** Bytes of these messages together. */
    public long messageBytes() {
        return numPeers() * GATHERED_BYTES + numQps() * QP_HANDLE_BYTES;
    }
}
