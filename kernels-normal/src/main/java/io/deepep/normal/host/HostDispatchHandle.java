package io.deepep.normal.host;

import io.deepep.DispatchHandle;

/** The routing of one request's latest dispatch, on the host. */
final class HostDispatchHandle implements DispatchHandle {
    private final HostNormalState owner;
    private final Routing routing;
    private final ExpertGroups groups;
    private final int hidden;
    private final int numTopk;
    private final int numExperts;
    private final int numWorstTokens;
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
    }

    /** The handle as one of {@code state}'s. */
    static HostDispatchHandle of(DispatchHandle handle, HostNormalState state) {
        if (handle instanceof HostDispatchHandle host && host.owner == state) {
            return host;
        }
        throw new IllegalArgumentException(
                "the handle comes from another buffer or mode; use one that this buffer's dispatch returned");
    }

    /** Forgets the routing while it is overwritten. */
    void invalidate() {
        epoch = 0;
    }

    /** The routing is that of the dispatch {@code atEpoch}, which brought {@code rows} rows. */
    void validate(long atEpoch, int rows) {
        epoch = atEpoch;
        numReceived = rows;
    }

    void requireValid() {
        if (epoch == 0) {
            throw new IllegalArgumentException(
                    "the dispatch of the handle has not run, or failed; dispatch its request again first");
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
