package io.deepep.normal.host.internode;

import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;

/**
 * A part that fills the rings of other nodes, or empties those that they fill. Each (channel,
 * place) advances by itself, so a full or empty ring holds up nobody else.
 */
abstract class RingRole implements Role {
    final Rings rings;
    final Blocked blocked;
    private final Rails.Ends ends;
    private final boolean[] open;
    private int numOpen;

    /** A part over rings that lead to or come from {@code ends}. */
    RingRole(HostNormalState state, Rings rings, Rails.Ends ends) {
        this.rings = rings;
        this.ends = ends;
        this.blocked = new Blocked(state, ends);
        this.open = new boolean[rings.numChannels() * ends.size()];
    }

    /** Moves up to a chunk; returns what was done. */
    abstract int advance(int channel, int place);

    /** The ring at {@code channel} and {@code place} in arrays that have one value for each. */
    final int ring(int channel, int place) {
        return channel * ends.size() + place;
    }

    /** All rows of the ring have been moved. */
    final void close(int channel, int place) {
        open[ring(channel, place)] = false;
        numOpen--;
    }

    @Override
    public void start() {
        numOpen = 0;
        for (int i = 0; i < open.length; i++) {
            open[i] = ends.isUsed(i % ends.size());
            numOpen += open[i] ? 1 : 0;
        }
    }

    @Override
    public final int doWork() {
        blocked.clear();
        int done = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int place = 0; place < ends.size(); place++) {
                if (open[ring(channel, place)]) {
                    done += advance(channel, place);
                }
            }
        }
        return done;
    }

    @Override
    public final boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public final int awaited() {
        return blocked.rank();
    }
}
