package io.deepep.cuda;

import java.util.function.BooleanSupplier;

/**
 * How a virtual thread waits for a GPU: it asks from time to time, so that its carrier runs others
 * meanwhile, among them perhaps the ranks that the GPU waits for. The driver would hold the
 * carrier.
 */
public final class VirtualThreads {
    private static final long NANOS_PER_PAUSE = 1_000;
    private static final long MAX_NANOS = 50_000;

    private VirtualThreads() {}

    /** Whether this thread is one. */
    public static boolean isOne() {
        return Thread.currentThread().isVirtual();
    }

    /**
     * Asks until the answer is yes, with pauses. Between them the carrier may become another one,
     * and with it the context that is current.
     */
    static void await(BooleanSupplier done) {
        for (long pauses = 0; !done.getAsBoolean(); pauses++) {
            pause(pauses);
        }
    }

    /**
     * Lets others run, on any thread. To yield would not do: whoever yields is run again before
     * those who have waited for a lock. An interrupt does not end a wait for a GPU; it stays set.
     *
     * @param pauses of the same wait so far: the more, the longer is this one
     */
    public static void pause(long pauses) {
        boolean interrupted = Thread.interrupted(); // or it would not sleep
        try {
            Thread.sleep(0, (int) Math.min(MAX_NANOS, NANOS_PER_PAUSE * (pauses + 1)));
        } catch (InterruptedException now) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
