package io.deepep.planner;

import java.util.Locale;

/** The two directions. */
public enum Op {
    /** Tokens to their experts. */
    DISPATCH,
    /** Results home. */
    COMBINE;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
