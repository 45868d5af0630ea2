package io.deepep.normal.host;

/** What holds up a part that a rank plays: the ring of a silent peer, if there is one. */
final class Blocked {
    private final HostNormalState state;
    private int channel;
    private int node;
    private boolean silent;

    Blocked(HostNormalState state) {
        this.state = state;
    }

    /** Before another look. */
    void clear() {
        silent = false;
        node = state.topology.rdmaRank();
    }

    /** A ring had no row, or no room. */
    void by(int blockedChannel, int blockedNode) {
        if (!silent) {
            channel = blockedChannel;
            node = blockedNode;
            silent = state.exchange.isSilent(state.peerOn(blockedNode));
        }
    }

    int channel() {
        return channel;
    }

    int node() {
        return node;
    }
}
