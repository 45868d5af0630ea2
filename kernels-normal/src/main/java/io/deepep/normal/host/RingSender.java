package io.deepep.normal.host;

/**
 * Puts each token once into a ring of every other node it goes to, at the rank with this rank's
 * nvlRank. Token {@code t} travels by channel {@code t} modulo their number; each (channel, node)
 * advances by itself, so a full ring holds up nobody else.
 */
final class RingSender implements Role {
    private final HostNormalState state;
    private final Routing routing;
    private final TokenRows tokens;
    private final Rings rings;
    private final int numNodes;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    RingSender(HostNormalState state, Routing routing, TokenRows tokens, Rings rings) {
        this.state = state;
        this.routing = routing;
        this.tokens = tokens;
        this.rings = rings;
        this.blocked = new Blocked(state);
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
        int sent = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (state.isRemote(node) && next[channel * numNodes + node] >= 0) {
                    sent += send(channel, node);
                }
            }
        }
        return sent;
    }

    /** Sends up to a chunk; what was put is told before this rank turns to other work. */
    private int send(int channel, int node) {
        int at = channel * numNodes + node;
        int sent = 0;
        int token = next[at];
        for (; token < routing.numTokens() && sent < rings.chunk(); token += rings.numChannels()) {
            if (!routing.crosses(token, node)) {
                continue;
            }
            if (!rings.hasRoom(channel, node)) {
                blocked.by(channel, node);
                break;
            }
            tokens.write(token, rings.peerMemory(node), rings.writeSlot(channel, node));
            rings.wrote(channel, node);
            sent++;
        }
        next[at] = token;
        rings.publish(channel, node);
        if (token >= routing.numTokens()) {
            next[at] = -1;
            numOpen--;
            return sent + 1;
        }
        return sent;
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
