package io.deepep.communicator;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What is on its way to one address, in order. Another thread sends it, so that nobody here waits:
 * connecting to a process that has stopped takes seconds, and so does writing to one that does not
 * read.
 */
final class Outbox {
    /**
     * More than flow control lets out. What is above is lost, as on a network: it is sent again.
     */
    static final int MAX_FRAMES = 1024;

    /** Sends to the address. */
    @FunctionalInterface
    interface Wire {
        void send(byte[] frame) throws Exception;
    }

    private final Wire wire;
    private final ConcurrentLinkedQueue<byte[]> frames = new ConcurrentLinkedQueue<>();

    /** Those that wait and the one that is being sent; whoever makes it 1 starts the thread. */
    private final AtomicInteger numFrames = new AtomicInteger();

    Outbox(Wire wire) {
        this.wire = wire;
    }

    /** Takes over {@code frame}. */
    void add(byte[] frame) {
        if (isFull()) {
            return;
        }
        frames.add(frame);
        if (numFrames.getAndIncrement() == 0 && !Errands.start(() -> drain(wire))) {
            drain(_ -> {}); // lost too: the next frame asks for a thread again
        }
    }

    boolean isFull() {
        return numFrames.get() >= MAX_FRAMES;
    }

    private void drain(Wire to) {
        do {
            try {
                to.send(frames.remove());
            } catch (Exception | Error unreachable) {
                // Reliable delivery sends it again, and failure detection looks into it.
            }
        } while (numFrames.decrementAndGet() > 0);
    }
}
