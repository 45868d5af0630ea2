package io.deepep.bench.plan;

import java.util.Locale;

/** The two directions. */
enum Op {
    /** Tokens to their experts. */
    DISPATCH,
    /** Results home. */
    COMBINE;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
