package io.deepep.buffer;

import io.deepep.observe.CallFacts;
import io.deepep.observe.ObservedCall;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** What one operation exchanged with one rank, and how long it waited for it; one per peer. */
@Name("io.deepep.Peer")
@Label("Exchange with a peer")
@Category("DeepEP")
@Description(
        "What one dispatch or combine exchanged with one rank; off unless a recording enables it")
@StackTrace(false)
@Enabled(false)
final class PeerEvent extends Event {
    @Label("Call")
    long call;

    @Label("Mode")
    String mode;

    @Label("Operation")
    String operation;

    @Label("Rank")
    int rank;

    @Label("Peer")
    @Description("The other rank; the rank itself for the rows it keeps")
    int peer;

    @Label("Sent Bytes")
    @Description("Bytes of rows from this rank to the peer; -1 if the host does not know")
    @DataAmount
    long sentBytes;

    @Label("Received Bytes")
    @Description("Bytes of rows from the peer to this rank; -1 if the host does not know")
    @DataAmount
    long receivedBytes;

    @Label("Wait")
    @Description("Time that this rank waited for the peer with nothing else to do")
    @Timespan(Timespan.NANOSECONDS)
    long waitTime;

    /** Commits one for each rank. */
    static void commitAll(long number, ObservedCall seen) {
        CallFacts facts = seen.facts();
        for (int peer = 0; peer < facts.topology().numRanks(); peer++) {
            PeerEvent event = new PeerEvent();
            event.call = number;
            event.mode = seen.kind().mode();
            event.operation = seen.kind().operation();
            event.rank = facts.topology().rank();
            event.peer = peer;
            event.sentBytes = bytes(facts.sentRows(), peer, facts.rowBytes());
            event.receivedBytes = bytes(facts.receivedRows(), peer, facts.rowBytes());
            event.waitTime = facts.waitNanos() == null ? Long.MIN_VALUE : facts.waitNanos()[peer];
            event.commit();
        }
    }

    private static long bytes(long[] rows, int peer, long rowBytes) {
        return rows == null ? CallFacts.UNKNOWN : rows[peer] * rowBytes;
    }
}
