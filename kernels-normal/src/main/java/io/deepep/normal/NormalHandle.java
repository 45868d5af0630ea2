package io.deepep.normal;

import io.deepep.DispatchHandle;

/** What the handles of all backends are: the routing of one plan's latest dispatch. */
public abstract class NormalHandle implements DispatchHandle {
    private final int hidden;
    private final int numTopk;
    private final int numExperts;
    private final int numWorstTokens;
    private boolean valid;

    protected NormalHandle(int hidden, int numTopk, int numExperts, int numWorstTokens) {
        this.hidden = hidden;
        this.numTopk = numTopk;
        this.numExperts = numExperts;
        this.numWorstTokens = numWorstTokens;
    }

    /** For a handle that is not one of this buffer's. */
    public static IllegalArgumentException foreign() {
        return new IllegalArgumentException(
                "the handle comes from another buffer or mode; use one that this buffer's dispatch returned");
    }

    /** Forgets the routing while it is overwritten. */
    public final void invalidate() {
        valid = false;
    }

    /** The routing is that of a dispatch. */
    protected final void setValid() {
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

    @Override
    public final String toString() {
        return "DispatchHandle[numTokens=%s, hidden=%s, numTopk=%s, numExperts=%s%s]"
                .formatted(numTokens(), hidden, numTopk, numExperts, valid ? "" : ", not valid");
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
}
