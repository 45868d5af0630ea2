package io.deepep.normal.host;

import io.deepep.host.HostHeap;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;

/**
 * Empties the rings of the other nodes: copies each token to its rows at the ranks of this node.
 * Which tokens come, and in what order, it knows from the records.
 */
final class RingForwarder implements Role {
    private final HostNormalState state;
    private final Routing routing;
    private final Rings rings;
    private final RowFormat format;
    private final Region rows;
    private final HostHeap nvl;
    private final int numNodes;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    RingForwarder(HostNormalState state, Routing routing, RowFormat format, Rings rings) {
        this.state = state;
        this.routing = routing;
        this.rings = rings;
        this.blocked = new Blocked(state);
        this.format = format;
        this.rows = state.nvlLayout.recvRows().of(format.strideBytes());
        this.nvl = state.context.nvl();
        this.numNodes = state.topology.numRdmaRanks();
        this.next = new int[rings.numChannels() * numNodes];
    }

    @Override
    public void start() {
        numOpen = rings.numChannels() * (numNodes - 1);
        for (int i = 0; i < next.length; i++) {
            next[i] = i / numNodes;
        }
    }

    @Override
    public int doWork() {
        blocked.clear();
        int done = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (state.isRemote(node) && next[channel * numNodes + node] >= 0) {
                    done += forward(channel, node);
                }
            }
        }
        return done;
    }

    private int forward(int channel, int node) {
        int at = channel * numNodes + node;
        int numTokens = routing.sourceTokens(node);
        int taken = 0;
        int token = next[at];
        for (; token < numTokens && taken < rings.chunk(); token += rings.numChannels()) {
            if (!routing.forwarded().goesTo(node, token)) {
                continue;
            }
            if (!rings.hasRow(channel, node)) {
                blocked.by(channel, node);
                break;
            }
            copy(token, node, rings.readSlot(channel, node));
            rings.consumed(channel, node);
            taken++;
        }
        next[at] = token;
        if (token >= numTokens) {
            next[at] = -1;
            numOpen--;
            return taken + 1;
        }
        return taken;
    }

    private void copy(int token, int node, long slot) {
        MemorySegment source = rings.ownMemory();
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int row = routing.forwarded().row(node, token, nvlRank);
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
        return state.peerOn(blocked.node());
    }

    @Override
    public void idle() {
        rings.idleForRow(blocked.channel(), blocked.node());
    }
}
