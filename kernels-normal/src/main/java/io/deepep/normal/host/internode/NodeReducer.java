package io.deepep.normal.host.internode;

import io.deepep.host.RowSum;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.node.OfferedRows;
import io.deepep.normal.host.node.SentRows;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.normal.host.routing.Routing;

/**
 * Reduces within the node for owners on others: sums the node's rows of each token that this rank
 * forwarded in the dispatch, in the order of nvlRanks, rounds to BF16 and puts the row, cast if
 * rows are, into the owner's ring.
 */
public final class NodeReducer extends RingFiller {
    private final Routing routing;
    private final OfferedRows offered;
    private final SentRows sent;
    private final RowSum sum;

    public NodeReducer(
            HostNormalState state,
            HostDispatchHandle handle,
            Rings rings,
            OfferedRows offered,
            SentRows sent) {
        super(state, rings);
        this.routing = handle.routing;
        this.offered = offered;
        this.sent = sent;
        this.sum = new RowSum(state.topology.numNvlRanks(), sent.format.hidden());
    }

    @Override
    int numTokens(int place) {
        return routing.sourceTokens(place);
    }

    @Override
    boolean travels(int token, int place) {
        return routing.forwarded.goesTo(place, token);
    }

    @Override
    void move(int token, int channel, int place) {
        sum.clear();
        offered.addRows(sum, routing.forwarded, place, token);
        sent.put(sum, rings.peerMemory(place), rings.writeSlot(channel, place));
    }
}
