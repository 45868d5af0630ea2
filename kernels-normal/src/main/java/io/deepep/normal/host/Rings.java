package io.deepep.normal.host;

import io.deepep.host.HostHeap;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.RingShape;
import io.deepep.normal.Word;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;

/**
 * The rings that carry the rows of one call between nodes, one for each channel and peer, in the
 * memory of the rank that reads it: internode_rings.cuh in Java. Tails and heads count from 0 in
 * each call, beside its epoch, so nothing is cleared and a call may divide its memory differently
 * from the last.
 */
final class Rings {
    private final HostNormalState state;
    private final HostHeap rdma;
    private final RingShape shape;
    private final Region[] slots;
    private final Region tails;
    private final Region heads;
    private final int numNodes;
    private final int[] written;
    private final int[] published;
    private final int[] read;
    private final int[] released;

    /**
     * Rings of a plan's calls.
     *
     * @param slotBytes of a row with its padding
     */
    Rings(HostNormalState state, RingShape shape, long slotBytes) {
        NormalRdmaLayout layout = state.rdmaLayout;
        this.state = state;
        this.rdma = state.context.rdma();
        this.shape = shape;
        this.tails = layout.tails();
        this.heads = layout.heads();
        this.numNodes = state.topology.numRdmaRanks();
        this.slots = new Region[numNodes];
        for (int node = 0; node < numNodes; node++) {
            slots[node] = layout.slots().cell(node).of(slotBytes);
        }
        int numRings = shape.numChannels() * numNodes;
        this.written = new int[numRings];
        this.published = new int[numRings];
        this.read = new int[numRings];
        this.released = new int[numRings];
    }

    /** Begins a call: all counts are 0. */
    void start() {
        for (int ring = 0; ring < written.length; ring++) {
            written[ring] = published[ring] = read[ring] = released[ring] = 0;
        }
    }

    int numChannels() {
        return shape.numChannels();
    }

    /** Rows after which the other side is told, and tokens of a turn. */
    int chunk() {
        return shape.sendChunk();
    }

    private int ring(int channel, int node) {
        return channel * numNodes + node;
    }

    /** What a word counts in this call. */
    private int count(long word) {
        return Word.epoch(word) == state.exchange.epoch() ? Word.value(word) : 0;
    }

    private int me() {
        return state.topology.rdmaRank();
    }

    private long slot(int cell, int channel, int count) {
        return slots[cell].at((long) channel * shape.numSlots() + count % shape.numSlots());
    }

    // ---- the filling side ----

    /** Whether the ring at {@code node} has a free slot. */
    boolean hasRoom(int channel, int node) {
        int taken = count(rdma.flag(heads.at(node, channel))); // acquire; pairs with release
        return written[ring(channel, node)] - taken < shape.numSlots();
    }

    /** The memory that holds the rings of {@code node}. */
    MemorySegment peerMemory(int node) {
        return rdma.of(state.peerOn(node));
    }

    /** Offset in {@link #peerMemory} of the slot to fill next. */
    long writeSlot(int channel, int node) {
        return slot(me(), channel, written[ring(channel, node)]);
    }

    /** The slot is filled; tells the other side once a chunk of them is. */
    void wrote(int channel, int node) {
        int ring = ring(channel, node);
        if (++written[ring] - published[ring] >= chunk()) {
            publish(channel, node);
        }
    }

    /** Tells the other side of all filled slots. */
    void publish(int channel, int node) {
        int ring = ring(channel, node);
        if (published[ring] != written[ring]) {
            published[ring] = written[ring];
            // release; pairs with hasRow
            signal(node, tails.at(me(), channel), written[ring]);
        }
    }

    /** Waits for room in the ring at {@code node}. */
    void idleForRoom(int channel, int node) {
        int taken = count(rdma.flag(heads.at(node, channel)));
        state.exchange.idle(state.peerOn(node), FaultPhase.ROWS, taken + 1L, taken);
    }

    // ---- the emptying side ----

    /** Whether {@code node} has filled a slot that was not read. */
    boolean hasRow(int channel, int node) {
        // acquire; pairs with publish
        return read[ring(channel, node)] < count(rdma.flag(tails.at(node, channel)));
    }

    /** This rank's memory with its own rings. */
    MemorySegment ownMemory() {
        return rdma.local();
    }

    /** Offset in {@link #ownMemory} of the slot to read next. */
    long readSlot(int channel, int node) {
        return slot(node, channel, read[ring(channel, node)]);
    }

    /** The slot is read; gives slots back once a chunk of them is. */
    void consumed(int channel, int node) {
        int ring = ring(channel, node);
        if (++read[ring] - released[ring] >= chunk()) {
            released[ring] = read[ring];
            // release; pairs with hasRoom
            signal(node, heads.at(me(), channel), read[ring]);
        }
    }

    /** Waits for a row of {@code node}. */
    void idleForRow(int channel, int node) {
        int seen = read[ring(channel, node)];
        state.exchange.idle(state.peerOn(node), FaultPhase.ROWS, seen + 1L, seen);
    }

    private void signal(int node, long flag, int count) {
        rdma.signal(state.peerOn(node), flag, Word.of(state.exchange.epoch(), count));
    }
}
