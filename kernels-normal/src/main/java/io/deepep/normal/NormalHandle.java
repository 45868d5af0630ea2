package io.deepep.normal;

import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;

/** What the handles of all backends are: the routing of one plan's latest dispatch. */
public abstract class NormalHandle implements DispatchHandle {
    final NormalState owner;
    private final int numTokens;
    private final int hidden;
    private final int numTopk;
    private final int numExperts;
    private final int numWorstTokens;
    private final boolean expanded;
    private final int expertAlignment;
    private boolean valid;
    private int numReceived;
    private int numShown;

    /** Of a plan without a handle. */
    protected NormalHandle(NormalState owner, DispatchPlan plan) {
        boolean topk = plan.topkIdx() != null;
        this.owner = owner;
        this.numTokens = (int) plan.x().size(0);
        this.hidden = (int) plan.x().size(1);
        this.numTopk = topk ? (int) plan.topkIdx().size(1) : 0;
        this.numExperts = topk ? plan.numExperts() : 0;
        this.numWorstTokens = plan.numWorstTokens();
        this.expanded = plan.expanded();
        this.expertAlignment = plan.expertAlignment();
    }

    /** Forgets the routing while it is overwritten. */
    public final void invalidate() {
        valid = false;
    }

    /** The routing is that of a dispatch that brought so many rows, and shows so many. */
    public final void validate(int received, int shown) {
        numReceived = received;
        numShown = shown;
        valid = true;
    }

    public final boolean isValid() {
        return valid;
    }

    public final void requireValid() {
        if (!valid) {
            throw new IllegalArgumentException(
                    "the dispatch of the handle has not run, or failed; dispatch its plan again first");
        }
    }

    /** Rows of a result whose size does not depend on the routing; 0 for exact counts. */
    public final int numWorstTokens() {
        return numWorstTokens;
    }

    /** The number to a multiple of which counts per expert were rounded up. */
    public final int expertAlignment() {
        return expertAlignment;
    }

    /** Rows in the receive region, as {@link #validate} was told. */
    public final int numReceived() {
        return numReceived;
    }

    /**
     * Rows of the result, and of the x that combine takes: received, expanded or the worst case.
     */
    public final int numResultRows() {
        return numWorstTokens > 0 ? numWorstTokens : numShown;
    }

    public final int numLocalExperts() {
        return numExperts / owner.topology.numRanks();
    }

    @Override
    public final String toString() {
        return "DispatchHandle[numTokens=%s, hidden=%s, numTopk=%s, numExperts=%s%s]"
                .formatted(numTokens, hidden, numTopk, numExperts, valid ? "" : ", not valid");
    }

    @Override
    public final int numTokens() {
        return numTokens;
    }

    @Override
    public final int hidden() {
        return hidden;
    }

    @Override
    public final int numTopk() {
        return numTopk;
    }

    @Override
    public final int numExperts() {
        return numExperts;
    }

    @Override
    public final int numRecvTokens() {
        return numWorstTokens > 0 ? numWorstTokens : numReceived;
    }

    @Override
    public final boolean expanded() {
        return expanded;
    }
}
