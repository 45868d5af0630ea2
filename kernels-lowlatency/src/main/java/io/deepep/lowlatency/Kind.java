package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;

/** The two kinds of calls, each counted by itself. */
public enum Kind implements KernelEnum {
    /** Tokens go to experts. */
    DISPATCH,
    /** Results come back. */
    COMBINE;

    /** The other one. */
    public Kind other() {
        return this == DISPATCH ? COMBINE : DISPATCH;
    }

    /** In messages. */
    public String text() {
        return this == DISPATCH ? "dispatch" : "combine";
    }
}
