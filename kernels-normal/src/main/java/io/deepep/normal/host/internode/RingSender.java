package io.deepep.normal.host.internode;

import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.node.GivenRows;
import io.deepep.normal.host.routing.Routing;

/** Puts each token once into a ring of every other node it goes to, at its forwarder there. */
public final class RingSender extends RingRole {
    private final Routing routing;
    private final GivenRows tokens;

    public RingSender(HostNormalState state, Routing routing, GivenRows tokens, Rings rings) {
        super(state, rings, true);
        this.routing = routing;
        this.tokens = tokens;
    }

    @Override
    int numTokens(int place) {
        return routing.numTokens();
    }

    @Override
    boolean travels(int token, int place) {
        return routing.crosses(token, place);
    }

    @Override
    void move(int token, int channel, int place) {
        tokens.write(token, rings.peerMemory(place), rings.writeSlot(channel, place));
    }
}
