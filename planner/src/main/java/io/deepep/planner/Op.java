package io.deepep.planner;

import java.util.Locale;

/** The operations. */
public enum Op {
    /** Sends tokens to their experts. */
    DISPATCH,
    /** Returns the experts' results to the tokens' ranks. */
    COMBINE;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
