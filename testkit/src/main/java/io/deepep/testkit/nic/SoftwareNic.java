package io.deepep.testkit.nic;

import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * The network cards of all ranks and the wire between them: executes what is written to the send
 * queues of its queue pairs. Either step by step with {@link #doWork}, or by a thread of its own
 * after {@link #start}.
 */
public final class SoftwareNic implements AutoCloseable {
    private static final int MAX_ENTRIES_PER_TURN = 8;
    private static final int SPINS_BEFORE_PARKING = 200;
    private static final long PARK_NANOS = 20_000;

    private final List<QueuePair> queues = new CopyOnWriteArrayList<>();
    private final NicFaults faults;
    private final Random random;
    private final Consumer<WorkEntry> trace;
    private final Thread thread = new Thread(this::run, "software-nic");
    private volatile boolean closed;
    private volatile RuntimeException misuse;
    private long turn;

    /**
     * A card without queues.
     *
     * @param faults what is to go wrong
     * @param seed of the order in which queues are served
     * @param trace is shown every entry before it is executed
     */
    public SoftwareNic(NicFaults faults, long seed, Consumer<WorkEntry> trace) {
        this.faults = faults;
        this.random = new Random(seed);
        this.trace = trace;
        thread.setDaemon(true);
    }

    /**
     * Adds a queue pair, connected to one peer.
     *
     * @param number 24 bits, not 0, unique
     * @param local memory of the rank that sends
     * @param remote memory of its peer
     */
    public void connect(
            int number, QueueMemory memory, RegisteredMemory local, RegisteredMemory remote) {
        queues.add(new QueuePair(number, memory, local, remote, faults, trace));
    }

    /**
     * One turn: a few entries of one queue that has some, and the completions that are due.
     *
     * @return whether there is more to do
     * @throws NicMisuseException if device code broke a rule
     */
    public boolean doWork() {
        turn++;
        boolean more = false;
        if (!faults.stopped()) {
            List<QueuePair> ready = queues.stream().filter(QueuePair::hasWork).toList();
            more = !ready.isEmpty();
            if (more) {
                serve(ready.get(random.nextInt(ready.size())));
            }
        }
        for (QueuePair queue : queues) {
            more |= queue.complete(turn);
        }
        return more;
    }

    private void serve(QueuePair queue) {
        for (int i = random.nextInt(MAX_ENTRIES_PER_TURN); i >= 0 && queue.hasWork(); i--) {
            int delay = faults.maxCompletionDelay();
            queue.execute(turn, delay == 0 ? 0 : random.nextInt(delay + 1));
        }
    }

    /** Works on a thread of its own until closed. */
    public void start() {
        thread.start();
    }

    private void run() {
        int idle = 0;
        try {
            while (!closed) {
                if (doWork()) {
                    idle = 0;
                } else if (++idle < SPINS_BEFORE_PARKING) {
                    Thread.onSpinWait();
                } else {
                    LockSupport.parkNanos(PARK_NANOS);
                }
            }
        } catch (RuntimeException e) {
            misuse = e;
        }
    }

    /** Throws what device code did wrong; the card has stopped working then. */
    public void check() {
        if (misuse != null) {
            throw misuse;
        }
    }

    /** Stops the thread, and throws what device code did wrong. */
    @Override
    public void close() {
        closed = true;
        if (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        check();
    }
}
