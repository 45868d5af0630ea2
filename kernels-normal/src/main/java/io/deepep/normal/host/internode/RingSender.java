package io.deepep.normal.host.internode;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.node.GivenRows;
import io.deepep.normal.host.routing.Routing;
import java.lang.foreign.MemorySegment;

/**
 * Puts each token once into a ring of every other node it goes to, at its forwarder there, and
 * behind its row the rows where it goes on that node.
 */
public final class RingSender extends RingFiller {
    private final Routing routing;
    private final GivenRows tokens;
    private final int numNvlRanks;

    public RingSender(HostNormalState state, Routing routing, GivenRows tokens, Rings rings) {
        super(state, rings);
        this.routing = routing;
        this.tokens = tokens;
        this.numNvlRanks = state.topology.numNvlRanks();
    }

    @Override
    int numTokens(int place) {
        return routing.numTokens;
    }

    @Override
    boolean travels(int token, int place) {
        return routing.crosses(token, place);
    }

    @Override
    void move(int token, int channel, int place) {
        MemorySegment target = rings.peerMemory(place);
        long slot = rings.writeSlot(channel, place);
        tokens.write(token, target, slot);
        long rows = slot + tokens.format.strideBytes();
        for (int nvlRank = 0; nvlRank < numNvlRanks; nvlRank++) {
            int row = routing.own.row(place, token, nvlRank);
            target.set(JAVA_INT_UNALIGNED, rows + (long) Integer.BYTES * nvlRank, row);
        }
    }

    @Override
    void end(int channel, int place) {
        rings.end(channel, place);
    }
}
