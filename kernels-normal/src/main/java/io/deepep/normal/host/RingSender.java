package io.deepep.normal.host;

import io.deepep.normal.Rails;

/**
 * Puts each token once into a ring of every other node it goes to, at its forwarder there. Token
 * {@code t} travels by channel {@code t} modulo their number; each (channel, place) advances by
 * itself, so a full ring holds up nobody else.
 */
final class RingSender implements Role {
    /** Of {@link #next}: all tokens are through. */
    private static final int DONE = -1;

    private final Routing routing;
    private final TokenRows tokens;
    private final Rings rings;
    private final Rails.Ends ends;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    RingSender(HostNormalState state, Routing routing, TokenRows tokens, Rings rings) {
        this.routing = routing;
        this.tokens = tokens;
        this.rings = rings;
        this.ends = rings.to();
        this.blocked = new Blocked(state, ends);
        this.next = new int[rings.numChannels() * ends.size()];
    }

    @Override
    public void start() {
        numOpen = 0;
        for (int i = 0; i < next.length; i++) {
            boolean used = ends.isUsed(i % ends.size());
            next[i] = used ? i / ends.size() : DONE;
            numOpen += used ? 1 : 0;
        }
    }

    @Override
    public int doWork() {
        blocked.clear();
        int sent = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int place = 0; place < ends.size(); place++) {
                if (next[channel * ends.size() + place] != DONE) {
                    sent += send(channel, place);
                }
            }
        }
        return sent;
    }

    /** Sends up to a chunk; what was put is told before this rank turns to other work. */
    private int send(int channel, int place) {
        int at = channel * ends.size() + place;
        int sent = 0;
        int token = next[at];
        for (; token < routing.numTokens() && sent < rings.chunk(); token += rings.numChannels()) {
            if (!routing.crosses(token, place)) {
                continue;
            }
            if (!rings.hasRoom(channel, place)) {
                blocked.by(channel, place);
                break;
            }
            tokens.write(token, rings.peerMemory(place), rings.writeSlot(channel, place));
            rings.wrote(channel, place);
            sent++;
        }
        next[at] = token;
        rings.publish(channel, place);
        if (token >= routing.numTokens()) {
            next[at] = DONE;
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
        return blocked.rank();
    }

    @Override
    public void idle() {
        rings.idleForRoom(blocked.channel(), blocked.place());
    }
}
