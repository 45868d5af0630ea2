package io.deepep.cuda.ibgda;

import io.deepep.cuda.rdma.DoorbellRegister;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Rings where the GPU cannot: kernels store a queue's doorbell in a word of host memory, from where
 * this thread takes it to the card's register.
 */
final class DoorbellThread implements AutoCloseable {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int IDLE_TURNS = 2000;
    private static final long NAP_NANOS = 10_000;

    private final MemorySegment words;
    private final List<MemorySegment> registers;
    private final ExecutorService thread =
            Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon().name("deepep-doorbells").factory());
    private volatile boolean stopped;

    /**
     * Starts it.
     *
     * @param words zeroed, one for each register
     */
    DoorbellThread(MemorySegment words, List<DoorbellRegister> registers) {
        this.words = words;
        this.registers =
                registers.stream()
                        .map(r -> MemorySegment.ofAddress(r.address()).reinterpret(Long.BYTES))
                        .toList();
        thread.execute(this::run);
    }

    private void run() {
        for (int idle = 0; !stopped; ) {
            if (ring()) {
                idle = 0;
            } else if (++idle > IDLE_TURNS) {
                LockSupport.parkNanos(NAP_NANOS);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    private boolean ring() {
        boolean any = false;
        for (int i = 0; i < registers.size(); i++) {
            long at = (long) Long.BYTES * i;
            if ((long) LONG.getOpaque(words, at) == 0) {
                continue;
            }
            // acquire; pairs with the kernel's release of the doorbell, after record and entries.
            // Taken away, because a queue pair that begins anew may ring with the same word.
            long word = (long) LONG.getAndSetAcquire(words, at, 0L);
            LONG.setRelease(registers.get(i), 0L, word);
            any = true;
        }
        return any;
    }

    /** Returns when it has stopped. */
    @Override
    public void close() {
        stopped = true;
        thread.close();
    }
}
