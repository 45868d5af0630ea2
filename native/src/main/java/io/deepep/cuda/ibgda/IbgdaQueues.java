package io.deepep.cuda.ibgda;

import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.error.NativeCallException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;

/**
 * The queue pairs of one rank to its peers, as the kernels' network policy {@code Ibgda} sees them:
 * {@code IbgdaQueues} of {@code deepep/ibgda_structs.cuh} with all it refers to.
 *
 * <p>Queue pairs, and the memory that network cards reach, belong to the caller. Immutable, except
 * for the faults that kernels write.
 */
public final class IbgdaQueues {
    /** Bytes of an entry of a send queue. */
    public static final int ENTRY_BYTES = 64;

    /** A warp's 32 lanes submit two entries each at most. */
    public static final int MIN_ENTRIES = 64;

    /** Indices in completions have 16 bits. */
    public static final int MAX_ENTRIES = 1 << 15;

    private static final KernelStruct RANK = IbgdaStructs.QUEUES;
    private static final KernelStruct PEER = IbgdaStructs.PEER;
    private static final KernelStruct QUEUE = IbgdaStructs.QUEUE;

    private final List<Peer> peers;
    private final int queuesPerNode;
    private final int numEntries;
    private final int localKey;
    private final Duration timeout;
    private final MemorySegment faults;
    private final long faultsAddress;

    /**
     * A queue pair; addresses as the GPU sees them.
     *
     * @param number 24 bits
     * @param entries of its send queue
     * @param record doorbell record
     * @param doorbell the network card's register
     * @param completion the one entry of its completion queue, which Java sees at the same address
     * @param landing 8 bytes of network memory, for what atomics return
     */
    public record QueuePair(
            int number,
            long entries,
            long record,
            long doorbell,
            MemorySegment completion,
            long landing) {}

    /**
     * The rank with the same place on a node.
     *
     * @param rank its number, for messages
     * @param base its network memory, as network cards name it
     * @param remoteKey that gives access to it
     * @param queues to it; none for this rank itself
     */
    public record Peer(int rank, long base, int remoteKey, List<QueuePair> queues) {}

    /**
     * What kernels will be told.
     *
     * @param peers by node
     * @param numEntries of each send queue, a power of two
     * @param localKey of this rank's network memory
     * @param timeout for the network card
     * @param faults zeroed memory of {@link #faultsBytes}, which kernels write and Java reads
     * @param faultsAddress the same as the GPU sees it
     */
    public IbgdaQueues(
            List<Peer> peers,
            int numEntries,
            int localKey,
            Duration timeout,
            MemorySegment faults,
            long faultsAddress) {
        if (Integer.bitCount(numEntries) != 1
                || numEntries < MIN_ENTRIES
                || numEntries > MAX_ENTRIES) {
            throw new IllegalArgumentException(
                    "numEntries="
                            + numEntries
                            + " is not a power of two from "
                            + MIN_ENTRIES
                            + " to "
                            + MAX_ENTRIES);
        }
        this.peers = List.copyOf(peers);
        this.queuesPerNode = peers.stream().mapToInt(peer -> peer.queues().size()).max().orElse(0);
        this.numEntries = numEntries;
        this.localKey = localKey;
        this.timeout = timeout;
        this.faults = faults.asSlice(0, faultsBytes(peers.size(), queuesPerNode));
        this.faultsAddress = faultsAddress;
        for (Peer peer : peers) {
            if (!peer.queues().isEmpty() && peer.queues().size() != queuesPerNode) {
                throw new IllegalArgumentException(
                        "rank "
                                + peer.rank()
                                + " has "
                                + peer.queues().size()
                                + " queue pairs, others have "
                                + queuesPerNode);
            }
        }
    }

    /** Bytes of the faults of so many queue pairs. */
    public static long faultsBytes(int numNodes, int queuesPerNode) {
        return IbgdaStructs.FAULT.numBytes() * numNodes * queuesPerNode;
    }

    /** Bytes of what kernels read. */
    public long numBytes() {
        return peersOffset()
                + PEER.numBytes() * peers.size()
                + QUEUE.numBytes() * peers.size() * queuesPerNode;
    }

    private static long peersOffset() {
        return RANK.numBytes();
    }

    private long queueOffset(int node, int idx) {
        return peersOffset()
                + PEER.numBytes() * peers.size()
                + QUEUE.numBytes() * ((long) node * queuesPerNode + idx);
    }

    private long faultOffset(int node, int idx) {
        return IbgdaStructs.FAULT.numBytes() * ((long) node * queuesPerNode + idx);
    }

    /**
     * Writes what kernels read, for queue pairs that have not been used.
     *
     * @param image zeroed memory of {@link #numBytes}
     * @param address where kernels will find it: {@code Network.queues}
     */
    public void write(MemorySegment image, long address) {
        Struct rank = new Struct(RANK, image, 0);
        rank.set("queues", address + queueOffset(0, 0))
                .set("peers", address + peersOffset())
                .set("timeout_ns", timeout.toNanos())
                .setInt("local_key", localKey)
                .setInt("queues_per_node", queuesPerNode)
                .setInt("num_entries", numEntries);
        for (int node = 0; node < peers.size(); node++) {
            Peer peer = peers.get(node);
            new Struct(PEER, image, peersOffset() + PEER.numBytes() * node)
                    .set("base", peer.base())
                    .setInt("remote_key", peer.remoteKey())
                    .setInt("rank", peer.rank());
            for (int idx = 0; idx < peer.queues().size(); idx++) {
                QueuePair pair = peer.queues().get(idx);
                new Struct(QUEUE, image, queueOffset(node, idx))
                        .set("entries", pair.entries())
                        .set("record", pair.record())
                        .set("doorbell", pair.doorbell())
                        .set("completion", pair.completion().address())
                        .set("landing", pair.landing())
                        .set("fault", faultsAddress + faultOffset(node, idx))
                        .setInt("number", pair.number());
            }
        }
    }

    /**
     * Throws what kernels have reported, and error completions that came after the last of them
     * looked.
     *
     * @throws NativeCallException names the peer, and the syndrome of an error completion
     */
    public void check() {
        NativeCallException failure = null;
        for (int node = 0; node < peers.size(); node++) {
            for (int idx = 0; idx < peers.get(node).queues().size(); idx++) {
                IbgdaFault fault = fault(node, idx);
                if (fault != null && failure == null) {
                    failure = fault.toException();
                } else if (fault != null) {
                    failure.addSuppressed(fault.toException());
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** Of a queue pair; null if there is none. */
    private IbgdaFault fault(int node, int idx) {
        long numBytes = IbgdaStructs.FAULT.numBytes();
        IbgdaFault seen = IbgdaFault.read(faults.asSlice(faultOffset(node, idx), numBytes));
        Peer peer = peers.get(node);
        return seen != null ? seen : IbgdaFault.ofCompletion(peer.rank(), peer.queues().get(idx));
    }

    /** A struct inside the image. */
    private record Struct(KernelStruct struct, MemorySegment image, long at) {
        Struct set(String field, long value) {
            image.set(ValueLayout.JAVA_LONG, at + struct.offset(field), value);
            return this;
        }

        Struct setInt(String field, int value) {
            image.set(ValueLayout.JAVA_INT, at + struct.offset(field), value);
            return this;
        }
    }
}
