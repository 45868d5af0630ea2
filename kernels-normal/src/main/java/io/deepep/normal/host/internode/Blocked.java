package io.deepep.normal.host.internode;

import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HostNormalState;

/** What holds up a part that a rank plays: the ring of a silent rank, if there is one. */
public final class Blocked {
    private static final int NONE = -1;

    private final HostNormalState state;
    private final Rails.Ends ends;
    private int channel;
    private int place;
    private boolean silent;

    /** Of a part that exchanges rows with {@code ends}. */
    Blocked(HostNormalState state, Rails.Ends ends) {
        this.state = state;
        this.ends = ends;
    }

    /** Before another look. */
    void clear() {
        silent = false;
        place = NONE;
    }

    /** A ring had no row, or no room. */
    void by(int blockedChannel, int blockedPlace) {
        if (!silent) {
            channel = blockedChannel;
            place = blockedPlace;
            silent = state.exchange.isSilent(ends.rank(blockedPlace));
        }
    }

    int channel() {
        return channel;
    }

    int place() {
        return place;
    }

    /** The rank at the other end of the ring; this one if nothing was held up. */
    int rank() {
        return place == NONE ? state.topology.rank() : ends.rank(place);
    }
}
