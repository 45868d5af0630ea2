package io.deepep.normal.host.internode;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import io.deepep.host.HostHeap;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;

/**
 * Empties the rings that other nodes fill: copies each token to its rows at the ranks of this node,
 * which its sender has written behind it.
 */
public final class RingForwarder extends RingRole {
    private final HostNormalState state;
    private final RowFormat format;
    private final Region rows;
    private final HostHeap nvl;

    public RingForwarder(HostNormalState state, RowFormat format, Rings rings) {
        super(state, rings, rings.from());
        this.state = state;
        this.format = format;
        this.rows = state.nvlLayout.recvRows().of(format.strideBytes());
        this.nvl = state.context.nvl();
    }

    @Override
    int advance(int channel, int place) {
        int moved = 0;
        while (moved < rings.chunk() && rings.hasRow(channel, place)) {
            move(channel, place);
            rings.consumed(channel, place);
            moved++;
        }
        if (rings.isOver(channel, place)) {
            close(channel, place);
            return moved + 1;
        }
        if (moved == 0) {
            blocked.by(channel, place);
        }
        return moved;
    }

    private void move(int channel, int place) {
        MemorySegment source = rings.ownMemory();
        long slot = rings.readSlot(channel, place);
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            long at = slot + format.strideBytes() + (long) Integer.BYTES * nvlRank;
            int row = source.get(JAVA_INT_UNALIGNED, at);
            if (row >= 0) {
                MemorySegment target = nvl.of(state.nodeRank(nvlRank));
                MemorySegment.copy(source, slot, target, rows.at(row), format.dataBytes());
            }
        }
    }

    @Override
    public void idle() {
        rings.idleForRow(blocked.channel(), blocked.place());
    }
}
