package io.deepep.normal.host.call;

/**
 * One of the parts that a rank plays in an operation, as a duty cycle: none ever blocks, so that
 * one thread can play them all.
 */
public interface Role {
    /** Begins the part again. */
    void start();

    /** Does some of what can be done now; 0 if nothing could. */
    int doWork();

    /** Whether the part is played. */
    boolean isDone();

    /** The rank that {@link #doWork} lacked something of; rather one that is silent. */
    int awaited();

    /** Waits for it. */
    void idle();

    /** Plays all parts to their end. Of the ranks that are waited for a silent one is blamed. */
    static void play(Role[] roles, CallExchange exchange) {
        for (Role role : roles) {
            role.start();
        }
        exchange.startWait();
        while (true) {
            int work = 0;
            Role waiting = null;
            for (Role role : roles) {
                if (!role.isDone()) {
                    work += role.doWork();
                    if (!role.isDone() && isBetterToBlame(role, waiting, exchange)) {
                        waiting = role;
                    }
                }
            }
            if (waiting == null) {
                return;
            }
            if (work > 0) {
                exchange.progress();
            } else {
                waiting.idle();
            }
        }
    }

    private static boolean isBetterToBlame(Role role, Role other, CallExchange exchange) {
        return other == null
                || (!exchange.isSilent(other.awaited()) && exchange.isSilent(role.awaited()));
    }
}
