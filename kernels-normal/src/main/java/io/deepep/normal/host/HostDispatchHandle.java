package io.deepep.normal.host;

import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.normal.NormalHeaders;
import io.deepep.spi.RecordedFacts;

/** The routing of one plan's latest dispatch, on the host. */
final class HostDispatchHandle implements DispatchHandle {
    private final HostNormalState owner;
    private final Routing routing;
    private final ExpertGroups groups;
    private final int hidden;
    private final int numTopk;
    private final int numExperts;
    private final int numWorstTokens;
    private final int[] receivedRows;
    private int numReceived;
    private long epoch;

    HostDispatchHandle(
            HostNormalState owner,
            Routing routing,
            ExpertGroups groups,
            int hidden,
            int numTopk,
            int numExperts,
            int numWorstTokens) {
        this.owner = owner;
        this.routing = routing;
        this.groups = groups;
        this.hidden = hidden;
        this.numTopk = numTopk;
        this.numExperts = numExperts;
        this.numWorstTokens = numWorstTokens;
        this.receivedRows = new int[owner.topology.numRanks()];
    }

    /** The handle as one of {@code state}'s. */
    static HostDispatchHandle of(DispatchHandle handle, HostNormalState state) {
        if (handle instanceof HostDispatchHandle host && host.owner == state) {
            return host;
        }
        throw new IllegalArgumentException(
                "the handle comes from another buffer or mode; use one that this buffer's dispatch"
                        + " returned");
    }

    /** Forgets the routing while it is overwritten. */
    void invalidate() {
        epoch = 0;
    }

    /** The routing is that of the dispatch {@code atEpoch}, which had these headers. */
    void validate(long atEpoch, NormalHeaders headers) {
        epoch = atEpoch;
        numReceived = headers.numRows(owner.topology.rank());
        for (int source = 0; source < receivedRows.length; source++) {
            receivedRows[source] = headers.tokens(source, owner.topology.rank());
        }
    }

    void requireValid() {
        if (epoch == 0) {
            throw new IllegalArgumentException(
                    "the dispatch of the handle has not run, or failed; dispatch its plan again"
                            + " first");
        }
    }

    /** Which dispatch this is the routing of. */
    long epoch() {
        return epoch;
    }

    Routing routing() {
        return routing;
    }

    /** The expanded layout, or null. */
    ExpertGroups groups() {
        return groups;
    }

    /** Rows in the receive region, however many the result shows. */
    int numReceived() {
        return numReceived;
    }

    /** [R] Rows that came from each rank. */
    int[] receivedRows() {
        return receivedRows;
    }

    /** Sets what this rank's tokens put on links, on their way out or home. */
    void describeLinks(RecordedFacts facts) {
        EpTopology topology = owner.topology;
        long nvlink = 0;
        long rdma = 0;
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            for (int token = 0; token < numTokens(); token++) {
                int mask = routing.scan().mask(token, node);
                // The rank with this nvlRank has the token in every node that it reaches.
                nvlink += Integer.bitCount(mask & ~(1 << topology.nvlRank()));
                rdma += mask != 0 && node != topology.rdmaRank() ? 1 : 0;
            }
        }
        facts.links(nvlink, rdma);
    }

    /** Rows of the result: received, expanded, or the worst case. */
    int numResultRows() {
        if (numWorstTokens > 0) {
            return numWorstTokens;
        }
        return groups == null ? numReceived : groups.numRows();
    }

    @Override
    public int numTokens() {
        return routing.numTokens();
    }

    @Override
    public int numRecvTokens() {
        return numWorstTokens > 0 ? numWorstTokens : numReceived;
    }

    @Override
    public int hidden() {
        return hidden;
    }

    @Override
    public int numTopk() {
        return numTopk;
    }

    @Override
    public int numExperts() {
        return numExperts;
    }

    @Override
    public boolean expanded() {
        return groups != null;
    }
}
