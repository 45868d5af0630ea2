package io.deepep.normal.host;

import io.deepep.host.RowSum;

/**
 * Reduces within the node for owners on others: sums the node's rows of each token that this rank
 * forwarded in the dispatch, in the order of nvlRanks, rounds to BF16 and puts the row, cast if
 * rows are, into the owner's ring.
 */
final class NodeReducer implements Role {
    private final HostNormalState state;
    private final Routing routing;
    private final Rings rings;
    private final OfferedRows offered;
    private final SentRows sent;
    private final RowSum sum;
    private final int numNodes;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    NodeReducer(
            HostNormalState state,
            HostDispatchHandle handle,
            Rings rings,
            OfferedRows offered,
            SentRows sent) {
        this.state = state;
        this.routing = handle.routing();
        this.rings = rings;
        this.blocked = new Blocked(state);
        this.offered = offered;
        this.sent = sent;
        this.sum = new RowSum(state.topology.numNvlRanks(), handle.hidden());
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
                    done += reduce(channel, node);
                }
            }
        }
        return done;
    }

    private int reduce(int channel, int node) {
        int at = channel * numNodes + node;
        int numTokens = routing.sourceTokens(node);
        int numSent = 0;
        int token = next[at];
        for (; token < numTokens && numSent < rings.chunk(); token += rings.numChannels()) {
            if (!routing.forwarded().goesTo(node, token)) {
                continue;
            }
            if (!rings.hasRoom(channel, node)) {
                blocked.by(channel, node);
                break;
            }
            sum.clear();
            offered.addRows(sum, routing.forwarded(), node, token);
            sent.put(sum, rings.peerMemory(node), rings.writeSlot(channel, node));
            rings.wrote(channel, node);
            numSent++;
        }
        next[at] = token;
        rings.publish(channel, node);
        if (token >= numTokens) {
            next[at] = -1;
            numOpen--;
            return numSent + 1;
        }
        return numSent;
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
        rings.idleForRoom(blocked.channel(), blocked.node());
    }
}
