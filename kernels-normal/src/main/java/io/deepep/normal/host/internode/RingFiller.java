package io.deepep.normal.host.internode;

import io.deepep.normal.host.call.HostNormalState;

/**
 * A part that fills the rings of other nodes. Token {@code t} travels by channel {@code t} modulo
 * their number.
 */
public abstract class RingFiller extends RingRole {
    /** The token that is looked at next, by ring. */
    private final int[] next;

    /** A part over rings. */
    RingFiller(HostNormalState state, Rings rings) {
        super(state, rings, rings.to());
        this.next = new int[rings.numChannels() * rings.to().size()];
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
        super.start();
        for (int i = 0; i < next.length; i++) {
            next[i] = i / rings.to().size();
        }
    }

    /** What was put is told before this rank turns to other work. */
    @Override
    final int advance(int channel, int place) {
        int at = ring(channel, place);
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
        if (token < numTokens) {
            return moved;
        }
        end(channel, place);
        close(channel, place);
        return moved + 1;
    }

    @Override
    public final void idle() {
        rings.idleForRoom(blocked.channel(), blocked.place());
    }
}
