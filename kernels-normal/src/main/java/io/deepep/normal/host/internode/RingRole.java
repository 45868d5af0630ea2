package io.deepep.normal.host.internode;

import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;

/**
 * A part that fills the rings of other nodes, or empties those that they fill. Token {@code t}
 * travels by channel {@code t} modulo their number; each (channel, place) advances by itself, so a
 * full or empty ring holds up nobody else.
 */
public abstract class RingRole implements Role {
    /** Of {@link #next}: all tokens are through. */
    private static final int DONE = -1;

    final Rings rings;
    private final boolean fills;
    private final Rails.Ends ends;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    /**
     * A part over rings.
     *
     * @param fills whether it puts rows into rings; else it takes them out
     */
    RingRole(HostNormalState state, Rings rings, boolean fills) {
        this.rings = rings;
        this.fills = fills;
        this.ends = fills ? rings.to() : rings.from();
        this.blocked = new Blocked(state, ends);
        this.next = new int[rings.numChannels() * ends.size()];
    }

    /** Tokens that are looked at for {@code place}. */
    abstract int numTokens(int place);

    /** Whether a row of {@code token} goes through the ring. */
    abstract boolean travels(int token, int place);

    /** Moves a token's row, into a ring that has room for it or out of one that has it. */
    abstract void move(int token, int channel, int place);

    @Override
    public final void start() {
        numOpen = 0;
        for (int i = 0; i < next.length; i++) {
            boolean used = ends.isUsed(i % ends.size());
            next[i] = used ? i / ends.size() : DONE;
            numOpen += used ? 1 : 0;
        }
    }

    @Override
    public final int doWork() {
        blocked.clear();
        int done = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int place = 0; place < ends.size(); place++) {
                if (next[channel * ends.size() + place] != DONE) {
                    done += advance(channel, place);
                }
            }
        }
        return done;
    }

    /** Moves up to a chunk; what was put is told before this rank turns to other work. */
    private int advance(int channel, int place) {
        int at = channel * ends.size() + place;
        int numTokens = numTokens(place);
        int moved = 0;
        int token = next[at];
        for (; token < numTokens && moved < rings.chunk(); token += rings.numChannels()) {
            if (!travels(token, place)) {
                continue;
            }
            if (!(fills ? rings.hasRoom(channel, place) : rings.hasRow(channel, place))) {
                blocked.by(channel, place);
                break;
            }
            move(token, channel, place);
            if (fills) {
                rings.wrote(channel, place);
            } else {
                rings.consumed(channel, place);
            }
            moved++;
        }
        next[at] = token;
        if (fills) {
            rings.publish(channel, place);
        }
        if (token >= numTokens) {
            next[at] = DONE;
            numOpen--;
            return moved + 1;
        }
        return moved;
    }

    @Override
    public final boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public final int awaited() {
        return blocked.rank();
    }

    @Override
    public final void idle() {
        if (fills) {
            rings.idleForRoom(blocked.channel(), blocked.place());
        } else {
            rings.idleForRow(blocked.channel(), blocked.place());
        }
    }
}
