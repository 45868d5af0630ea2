package io.deepep.normal.host;

/**
 * One of the parts that a rank plays in an operation, as a duty cycle: none ever blocks, so that
 * one thread can play them all.
 */
interface Role {
    /** Begins the part anew. */
    void start();

    /** Does some of what can be done now; 0 if nothing could. */
    int doWork();

    /** Whether the part is played. */
    boolean isDone();

    /** Waits for what {@link #doWork} lacked. */
    void idle();

    /** Plays all parts to their end; what the first of those that wait lacks is waited for. */
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
                    waiting = waiting == null && !role.isDone() ? role : waiting;
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
}
