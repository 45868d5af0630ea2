package io.deepep.spi;

import io.deepep.Plan;

/** How long calls wait for peers. */
public final class CallTimeouts {
    private CallTimeouts() {}

    /** That of the plan's calls, in nanoseconds: the plan's own, or else the buffer's. */
    public static long nanos(Plan plan, long ofBuffer) {
        return plan.timeout() == null ? ofBuffer : plan.timeout().toNanos();
    }
}
