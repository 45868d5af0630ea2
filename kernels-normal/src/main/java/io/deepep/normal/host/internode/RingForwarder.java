package io.deepep.normal.host.internode;

import io.deepep.host.HostHeap;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.Routing;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;

/**
 * Empties the rings that other nodes fill: copies each token to its rows at the ranks of this node.
 * Which tokens come, and in what order, it knows from the records.
 */
public final class RingForwarder extends RingRole {
    private final HostNormalState state;
    private final Routing routing;
    private final RowFormat format;
    private final Region rows;
    private final HostHeap nvl;

    public RingForwarder(HostNormalState state, Routing routing, RowFormat format, Rings rings) {
        super(state, rings, false);
        this.state = state;
        this.routing = routing;
        this.format = format;
        this.rows = state.nvlLayout.recvRows().of(format.strideBytes());
        this.nvl = state.context.nvl();
    }

    @Override
    int numTokens(int place) {
        return routing.sourceTokens(place);
    }

    @Override
    boolean travels(int token, int place) {
        return routing.forwarded().goesTo(place, token);
    }

    @Override
    void move(int token, int channel, int place) {
        MemorySegment source = rings.ownMemory();
        long slot = rings.readSlot(channel, place);
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int row = routing.forwarded().row(place, token, nvlRank);
            if (row >= 0) {
                MemorySegment target = nvl.of(state.nodeRank(nvlRank));
                MemorySegment.copy(source, slot, target, rows.at(row), format.dataBytes());
            }
        }
    }
}
