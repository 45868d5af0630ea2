package io.deepep.host;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.HeapRanks;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * What ranks that are threads of one process share: memory of each, freed by the last of them, so
 * that they may close in any order. A new rank takes over the memory of the rank whose place it
 * takes.
 *
 * @param <M> the memory of a rank
 */
public final class ThreadMemory<M> {
    private final AtomicReferenceArray<M> memories;
    private final AtomicInteger users = new AtomicInteger();
    private final Consumer<M> free;

    private ThreadMemory(int numRanks, Consumer<M> free) {
        this.memories = new AtomicReferenceArray<>(numRanks);
        this.free = free;
    }

    /** What a rank shows that has no memory. */
    private record Failure(Throwable cause) {}

    /**
     * Allocates this rank's memory and meets the peers or, as one of several new ranks, meets those
     * that have memory and {@link #meet}. Collective. Afterwards, the rank is one of those that
     * must {@link #release}; if this throws, it is not.
     *
     * @throws DeepEpUnavailableException if {@code allocate} threw on another rank
     */
    public static <M> ThreadMemory<M> open(
            HeapRanks ranks, Supplier<M> allocate, Consumer<M> free) {
        ThreadMemory<M> mine = new ThreadMemory<>(ranks.topology().numRanks(), free);
        if (!ranks.allNew()) {
            // The others hold the memory meanwhile, and release none while they meet.
            ThreadMemory<M> all = mine.exchange(ranks, ranks.newRanks().nextClearBit(0));
            all.users.incrementAndGet();
            return all;
        }
        ThreadMemory<M> all = mine.exchange(ranks, 0);
        // A rank that has failed in the exchange is no user: the others' memory does not wait for
        // it.
        all.users.incrementAndGet();
        try {
            all.allocate(ranks, allocate);
            all.exchange(ranks, 0);
            return all;
        } catch (RuntimeException | Error failure) {
            all.release();
            throw failure;
        }
    }

    /** If it fails, tells the others, which would wait for this rank. */
    private void allocate(HeapRanks ranks, Supplier<M> allocate) {
        try {
            memories.set(ranks.topology().rank(), allocate.get());
        } catch (RuntimeException | Error failure) {
            try {
                ranks.communicator().exchangeReferences(new Failure(failure), ranks.timeout());
            } catch (RuntimeException lost) {
                failure.addSuppressed(lost);
            }
            throw failure;
        }
    }

    /** What {@code rank} shows, when each shows something. */
    @SuppressWarnings("unchecked") // all ranks share the same kind of memory
    private ThreadMemory<M> exchange(HeapRanks ranks, int rank) {
        List<Object> shown = ranks.communicator().exchangeReferences(this, ranks.timeout());
        for (int other = 0; other < shown.size(); other++) {
            if (shown.get(other) instanceof Failure(Throwable cause)) {
                throw new DeepEpUnavailableException(
                        "rank " + other + " cannot allocate its buffer",
                        "free memory there, or lower the limits of the buffer",
                        cause);
            }
            if (!(shown.get(other) instanceof ThreadMemory<?>)) {
                throw RankMismatchException.ofCall("open", other);
            }
        }
        return (ThreadMemory<M>) shown.get(rank);
    }

    /** Shows the memory to new ranks, which open it. Collective. */
    public void meet(HeapRanks ranks) {
        exchange(ranks, 0);
    }

    /** The memory of {@code rank}. */
    public M of(int rank) {
        return memories.get(rank);
    }

    /** Gives up this rank's share. */
    public void release() {
        if (users.decrementAndGet() > 0) {
            return;
        }
        for (int rank = 0; rank < memories.length(); rank++) {
            // Once: of ranks that fail to meet, one may come when all before it have released.
            M memory = memories.getAndSet(rank, null);
            if (memory != null) {
                free.accept(memory);
            }
        }
    }
}
