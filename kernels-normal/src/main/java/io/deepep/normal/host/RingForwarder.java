package io.deepep.normal.host;

import io.deepep.host.HostHeap;
import io.deepep.normal.Rails;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;

/**
 * Empties the rings that other nodes fill: copies each token to its rows at the ranks of this node.
 * Which tokens come, and in what order, it knows from the records.
 */
final class RingForwarder implements Role {
    /** Of {@link #next}: all tokens are through. */
    private static final int DONE = -1;

    private final HostNormalState state;
    private final Routing routing;
    private final Rings rings;
    private final RowFormat format;
    private final Region rows;
    private final HostHeap nvl;
    private final Rails.Ends ends;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    RingForwarder(HostNormalState state, Routing routing, RowFormat format, Rings rings) {
        this.state = state;
        this.routing = routing;
        this.rings = rings;
        this.ends = rings.from();
        this.blocked = new Blocked(state, ends);
        this.format = format;
        this.rows = state.nvlLayout.recvRows().of(format.strideBytes());
        this.nvl = state.context.nvl();
        this.next = new int[rings.numChannels() * ends.size()];
    }

    @Override
    public void start() {
        numOpen = 0;
        for (int i = 0; i < next.length; i++) {
            boolean used = ends.isUsed(i % ends.size());
            next[i] = used ? i / ends.size() : DONE;
            numOpen += used ? 1 : 0;
        }
    }

    @Override
    public int doWork() {
        blocked.clear();
        int done = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int place = 0; place < ends.size(); place++) {
                if (next[channel * ends.size() + place] != DONE) {
                    done += forward(channel, place);
                }
            }
        }
        return done;
    }

    private int forward(int channel, int place) {
        int at = channel * ends.size() + place;
        int numTokens = routing.sourceTokens(place);
        int taken = 0;
        int token = next[at];
        for (; token < numTokens && taken < rings.chunk(); token += rings.numChannels()) {
            if (!routing.forwarded().goesTo(place, token)) {
                continue;
            }
            if (!rings.hasRow(channel, place)) {
                blocked.by(channel, place);
                break;
            }
            copy(token, place, rings.readSlot(channel, place));
            rings.consumed(channel, place);
            taken++;
        }
        next[at] = token;
        if (token >= numTokens) {
            next[at] = DONE;
            numOpen--;
            return taken + 1;
        }
        return taken;
    }

    private void copy(int token, int place, long slot) {
        MemorySegment source = rings.ownMemory();
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int row = routing.forwarded().row(place, token, nvlRank);
            if (row >= 0) {
                MemorySegment target = nvl.of(state.nodeRank(nvlRank));
                MemorySegment.copy(source, slot, target, rows.at(row), format.dataBytes());
            }
        }
    }

    @Override
    public boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public int awaited() {
        return blocked.rank();
    }

    @Override
    public void idle() {
        rings.idleForRow(blocked.channel(), blocked.place());
    }
}
