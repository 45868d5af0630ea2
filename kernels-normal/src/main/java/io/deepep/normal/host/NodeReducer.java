package io.deepep.normal.host;

import io.deepep.host.RowSum;
import io.deepep.normal.Rails;

/**
 * Reduces within the node for owners on others: sums the node's rows of each token that this rank
 * forwarded in the dispatch, in the order of nvlRanks, rounds to BF16 and puts the row, cast if
 * rows are, into the owner's ring.
 */
final class NodeReducer implements Role {
    /** Of {@link #next}: all tokens are through. */
    private static final int DONE = -1;

    private final Routing routing;
    private final Rings rings;
    private final OfferedRows offered;
    private final SentRows sent;
    private final RowSum sum;
    private final Rails.Ends ends;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    NodeReducer(
            HostNormalState state,
            HostDispatchHandle handle,
            Rings rings,
            OfferedRows offered,
            SentRows sent) {
        this.routing = handle.routing();
        this.rings = rings;
        this.ends = rings.to();
        this.blocked = new Blocked(state, ends);
        this.offered = offered;
        this.sent = sent;
        this.sum = new RowSum(state.topology.numNvlRanks(), handle.hidden());
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
        int done = 0;
        for (int channel = 0; channel < rings.numChannels(); channel++) {
            for (int place = 0; place < ends.size(); place++) {
                if (next[channel * ends.size() + place] != DONE) {
                    done += reduce(channel, place);
                }
            }
        }
        return done;
    }

    private int reduce(int channel, int place) {
        int at = channel * ends.size() + place;
        int numTokens = routing.sourceTokens(place);
        int numSent = 0;
        int token = next[at];
        for (; token < numTokens && numSent < rings.chunk(); token += rings.numChannels()) {
            if (!routing.forwarded().goesTo(place, token)) {
                continue;
            }
            if (!rings.hasRoom(channel, place)) {
                blocked.by(channel, place);
                break;
            }
            sum.clear();
            offered.addRows(sum, routing.forwarded(), place, token);
            sent.put(sum, rings.peerMemory(place), rings.writeSlot(channel, place));
            rings.wrote(channel, place);
            numSent++;
        }
        next[at] = token;
        rings.publish(channel, place);
        if (token >= numTokens) {
            next[at] = DONE;
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
        return blocked.rank();
    }

    @Override
    public void idle() {
        rings.idleForRoom(blocked.channel(), blocked.place());
    }
}
