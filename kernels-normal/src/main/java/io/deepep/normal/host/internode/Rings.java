package io.deepep.normal.host.internode;

import io.deepep.host.HostHeap;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;
import io.deepep.normal.RingShape;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import io.deepep.spi.Word;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The rings that carry the rows of one call between nodes, one for each channel and rank at the
 * other end, in the memory of the rank that reads it: internode_rings.cuh in Java. Tails and heads
 * count from 0 in each call, beside its epoch, so nothing is cleared and a call may divide its
 * memory differently from the last.
 */
public final class Rings {
    private final HostNormalState state;
    private final HostHeap rdma;
    private final RingShape shape;
    private final Region[] slots;
    private final Region tails;
    private final Region totals;
    private final Region heads;
    private final Rails.Ends to;
    private final Rails.Ends from;
    private final int[] written;
    private final int[] published;
    private final int[] read;
    private final int[] released;

    private Rings(
            HostNormalState state,
            RingShape shape,
            long slotBytes,
            Rails.Ends to,
            Rails.Ends from) {
        NormalRdmaLayout layout = state.rdmaLayout;
        this.state = state;
        this.rdma = state.context.rdma();
        this.shape = shape;
        this.tails = layout.tails();
        this.totals = layout.totals();
        this.heads = layout.heads();
        this.to = to;
        this.from = from;
        this.slots = new Region[Rails.numCells(state.topology)];
        for (int cell = 0; cell < slots.length; cell++) {
            slots[cell] = layout.slots().cell(cell).of(slotBytes);
        }
        this.written = new int[shape.numChannels() * to.size()];
        this.published = new int[written.length];
        this.read = new int[shape.numChannels() * from.size()];
        this.released = new int[read.length];
    }

    /** Rings of a dispatch plan's calls: filled for the forwarders of this rank's tokens. */
    public static Rings ofDispatch(HostNormalState state, RingShape shape, long slotBytes) {
        Rails rails = state.rails();
        return new Rings(state, shape, slotBytes, rails.forwarders(), rails.homes());
    }

    /** Rings of a combine plan's calls: filled for the ranks whose tokens this one forwarded. */
    public static Rings ofCombine(HostNormalState state, RingShape shape, long slotBytes) {
        Rails rails = state.rails();
        return new Rings(state, shape, slotBytes, rails.homes(), rails.forwarders());
    }

    /** Begins a call: all counts are 0. */
    public void start() {
        Arrays.fill(written, 0);
        Arrays.fill(published, 0);
        Arrays.fill(read, 0);
        Arrays.fill(released, 0);
    }

    int numChannels() {
        return shape.numChannels();
    }

    /** Rows after which the other side is told, and tokens of a turn. */
    int chunk() {
        return shape.sendChunk();
    }

    /** The ranks that rings here are filled for, by the place by which they are named below. */
    Rails.Ends to() {
        return to;
    }

    /** The ranks that fill the rings of this rank. */
    Rails.Ends from() {
        return from;
    }

    private int ring(Rails.Ends ends, int channel, int place) {
        return channel * ends.size() + place;
    }

    /** What a word counts in this call. */
    private int count(long word) {
        return Word.epoch(word) == state.exchange.epoch() ? Word.value(word) : 0;
    }

    private long slot(int cell, int channel, int count) {
        return slots[cell].at((long) channel * shape.numSlots() + count % shape.numSlots());
    }

    // ---- the filling side ----

    /** Whether the ring at a rank of {@link #to} has a free slot. */
    boolean hasRoom(int channel, int place) {
        int taken = count(rdma.flag(heads.at(place, channel))); // acquire; pairs with release
        return written[ring(to, channel, place)] - taken < shape.numSlots();
    }

    /** The memory that holds that ring. */
    MemorySegment peerMemory(int place) {
        return rdma.of(to.rank(place));
    }

    /** Offset in {@link #peerMemory} of the slot to fill next. */
    long writeSlot(int channel, int place) {
        return slot(to.cell(place), channel, written[ring(to, channel, place)]);
    }

    /** The slot is filled; tells the other side once a chunk of them is. */
    void wrote(int channel, int place) {
        int ring = ring(to, channel, place);
        if (++written[ring] - published[ring] >= chunk()) {
            publish(channel, place);
        }
    }

    /** Tells the other side of all filled slots. */
    void publish(int channel, int place) {
        int ring = ring(to, channel, place);
        if (published[ring] != written[ring]) {
            published[ring] = written[ring];
            // release; pairs with hasRow
            signal(to.rank(place), tails.at(to.cell(place), channel), written[ring]);
        }
    }

    /** All that was to be put into the ring at a rank of {@link #to} has been published. */
    void end(int channel, int place) {
        // pairs with isOver; nothing is ordered by it: tails say what is there
        signal(
                to.rank(place),
                totals.at(to.cell(place), channel),
                written[ring(to, channel, place)]);
    }

    /** Waits for room in the ring at a rank of {@link #to}. */
    void idleForRoom(int channel, int place) {
        int taken = count(rdma.flag(heads.at(place, channel)));
        state.exchange.idle(to.rank(place), FaultPhase.ROWS, taken + 1L, taken);
    }

    // ---- the emptying side ----

    /** Whether a rank of {@link #from} has filled a slot that was not read. */
    boolean hasRow(int channel, int place) {
        // acquire; pairs with publish
        return read[ring(from, channel, place)] < count(rdma.flag(tails.at(place, channel)));
    }

    /** Whether the ring of a rank of {@link #from} gets no more than has been read. */
    boolean isOver(int channel, int place) {
        long total = rdma.flag(totals.at(place, channel)); // pairs with end
        return Word.epoch(total) == state.exchange.epoch()
                && Word.value(total) == read[ring(from, channel, place)];
    }

    /** This rank's memory with its own rings. */
    MemorySegment ownMemory() {
        return rdma.local();
    }

    /** Offset in {@link #ownMemory} of the slot to read next. */
    long readSlot(int channel, int place) {
        return slot(place, channel, read[ring(from, channel, place)]);
    }

    /** The slot is read; gives slots back once a chunk of them is. */
    void consumed(int channel, int place) {
        int ring = ring(from, channel, place);
        if (++read[ring] - released[ring] >= chunk()) {
            released[ring] = read[ring];
            // release; pairs with hasRoom
            signal(from.rank(place), heads.at(from.cell(place), channel), read[ring]);
        }
    }

    /** Waits for a row of a rank of {@link #from}. */
    void idleForRow(int channel, int place) {
        int seen = read[ring(from, channel, place)];
        state.exchange.idle(from.rank(place), FaultPhase.ROWS, seen + 1L, seen);
    }

    private void signal(int rank, long flag, int count) {
        rdma.signal(rank, flag, Word.of(state.exchange.epoch(), count));
    }
}
