package io.deepep.normal.host.internode;

import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;

/**
 * A part that fills the rings of other nodes. Token {@code t} travels by channel {@code t} modulo
 * their number; each (channel, place) advances by itself, so a full ring holds up nobody else.
 */
public abstract class RingFiller implements Role {
    /** Of {@link #next}: all tokens are through. */
    private static final int DONE = -1;

    final Rings rings;
    private final Rails.Ends ends;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    /** A part over rings. */
    RingFiller(HostNormalState state, Rings rings) {
        this.rings = rings;
        this.ends = rings.to();
        this.blocked = new Blocked(state, ends);
        this.next = new int[rings.numChannels() * ends.size()];
    }

    /** Tokens that are looked at for {@code place}. */
    abstract int numTokens(int place);

    /** Whether a row of {@code token} goes through the ring. */
    abstract boolean travels(int token, int place);

    /** Moves a token's row into a ring that has room for it. */
    abstract void move(int token, int channel, int place);

    /** The ring gets no more rows; what it got has been told. */
    void end(int channel, int place) {}

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
            if (!rings.hasRoom(channel, place)) {
                blocked.by(channel, place);
                break;
            }
            move(token, channel, place);
            rings.wrote(channel, place);
            moved++;
        }
        next[at] = token;
        rings.publish(channel, place);
        if (token >= numTokens) {
            end(channel, place);
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
        rings.idleForRoom(blocked.channel(), blocked.place());
    }
}
