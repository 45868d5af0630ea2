package io.deepep.normal.host;

import io.deepep.EpTopology;
import io.deepep.host.HostHeap;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;

/**
 * The rings of one direction (dispatch or combine), one for each channel and remote node: this rank
 * fills those that lie at its peers and empties its own. Tails and heads count up for ever, so
 * nothing is cleared between operations and nothing of the next one can be mistaken for this one's.
 */
final class RdmaRings {
    private final EpTopology topology;
    private final HostHeap rdma;
    private final int numSlots;
    private final Region slots;
    private final Region tails;
    private final Region heads;
    private final int numNodes;
    private final long[] written;
    private final long[] published;
    private final long[] read;
    private final long[] released;

    RdmaRings(
            EpTopology topology,
            HostHeap rdma,
            int numSlots,
            Region slots,
            Region tails,
            Region heads) {
        this.topology = topology;
        this.rdma = rdma;
        this.numSlots = numSlots;
        this.slots = slots;
        this.tails = tails;
        this.heads = heads;
        this.numNodes = topology.numRdmaRanks();
        int numRings = (int) tails.count() * numNodes;
        this.written = new long[numRings];
        this.published = new long[numRings];
        this.read = new long[numRings];
        this.released = new long[numRings];
    }

    private int ring(int channel, int node) {
        return channel * numNodes + node;
    }

    private int peer(int node) {
        return topology.rankOf(node, topology.nvlRank());
    }

    // ---- the filling side ----

    /** Whether the ring at {@code node} has a free slot when at most {@code limit} are used. */
    boolean hasRoom(int channel, int node, int limit) {
        long head = rdma.flag(heads.at(channel, node)); // acquire; pairs with release
        return written[ring(channel, node)] - head < limit;
    }

    /** The memory that holds the rings of {@code node}. */
    MemorySegment peerMemory(int node) {
        return rdma.of(peer(node));
    }

    /** Offset in {@link #peerMemory} of the slot to fill next. */
    long writeSlot(int channel, int node) {
        return slots.at(channel, topology.rdmaRank(), written[ring(channel, node)] % numSlots);
    }

    /** The slot is filled; tells the other side once {@code chunk} are. */
    void wrote(int channel, int node, int chunk) {
        int ring = ring(channel, node);
        if (++written[ring] - published[ring] >= chunk) {
            publish(channel, node);
        }
    }

    /** Tells the other side of all filled slots. */
    void publish(int channel, int node) {
        int ring = ring(channel, node);
        if (published[ring] != written[ring]) {
            published[ring] = written[ring];
            rdma.signal(
                    peer(node),
                    tails.at(channel, topology.rdmaRank()),
                    written[ring]); // release; pairs with hasSlot
        }
    }

    /** Slots freed by {@code node}, for messages. */
    long head(int channel, int node) {
        return rdma.flag(heads.at(channel, node));
    }

    /** Slots filled towards {@code node}, for messages. */
    long numWritten(int channel, int node) {
        return written[ring(channel, node)];
    }

    // ---- the emptying side ----

    /** Whether {@code node} has filled a slot that was not read. */
    boolean hasSlot(int channel, int node) {
        return read[ring(channel, node)]
                < rdma.flag(tails.at(channel, node)); // acquire; pairs with publish
    }

    /** This rank's memory with its own rings. */
    MemorySegment ownMemory() {
        return rdma.local();
    }

    /** Offset in {@link #ownMemory} of the slot to read next. */
    long readSlot(int channel, int node) {
        return slots.at(channel, node, read[ring(channel, node)] % numSlots);
    }

    /** The slot is read; gives slots back once {@code chunk} are. */
    void consumed(int channel, int node, int chunk) {
        int ring = ring(channel, node);
        if (++read[ring] - released[ring] >= chunk) {
            release(channel, node);
        }
    }

    /** Gives all read slots back. */
    void release(int channel, int node) {
        int ring = ring(channel, node);
        if (released[ring] != read[ring]) {
            released[ring] = read[ring];
            rdma.signal(
                    peer(node),
                    heads.at(channel, topology.rdmaRank()),
                    read[ring]); // release; pairs with hasRoom
        }
    }

    /** Slots read from {@code node}, for messages. */
    long numRead(int channel, int node) {
        return read[ring(channel, node)];
    }
}
