package io.deepep.host;

import java.util.concurrent.locks.LockSupport;

/**
 * Wakes a rank's thread that waits for a flag. The flag itself lies in shared memory; the doorbell
 * only saves the waiter from polling. A ring can be missed in the moment before parking, so waiters
 * park for a bounded time.
 */
public final class HostDoorbell {
    private volatile Thread waiter;

    /** Wakes the waiter, if there is one. */
    public void ring() {
        Thread thread = waiter;
        if (thread != null) {
            LockSupport.unpark(thread);
        }
    }

    void listen(Thread thread) {
        waiter = thread;
    }
}
