package io.deepep.normal.host;

import io.deepep.host.HostWait;

/**
 * One of the parts that a rank plays in an operation, as a duty cycle: none ever blocks, so that
 * one thread can play them all.
 */
interface Role {
    /** Does some of what can be done now; 0 if nothing could. */
    int doWork();

    /** Whether the part is played. */
    boolean isDone();

    /** Waits for what {@link #doWork} lacked. */
    void idle(HostWait waiter);

    /** Plays all parts to their end. */
    static void play(Role[] roles, HostWait waiter) {
        waiter.start();
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
                waiter.progress();
            } else {
                waiting.idle(waiter);
            }
        }
    }
}
