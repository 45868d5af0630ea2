package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Meeting;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The NVSHMEM that all buffers of this process share. A process is a PE once at a time, a start
 * takes seconds, and to end it or to free its memory all PEs must come together: so the first
 * buffer starts it, it stays until one comes that needs another, and memory that buffers have given
 * back is freed when all ranks meet for the next one.
 */
public final class NvshmemWorld {
    private static final Slot PROCESS = new Slot();

    private final NvshmemOptions options;
    private final Nvshmem nvshmem;
    private final Map<String, CudaModule> modules = new ConcurrentHashMap<>();

    /** Memory by the number of its allocation, which is the same on all ranks. */
    private final Map<Integer, Block> blocks = new ConcurrentSkipListMap<>();

    private final AtomicInteger numAllocations = new AtomicInteger();

    private NvshmemWorld(NvshmemOptions options, Nvshmem nvshmem) {
        this.options = options;
        this.nvshmem = nvshmem;
    }

    /** Where a process keeps its world. */
    static final class Slot {
        private final ReentrantLock joining = new ReentrantLock();
        private volatile NvshmemWorld current;
        private boolean endsWithProcess;

        private void keep(NvshmemWorld world) {
            current = world;
            if (!endsWithProcess) {
                endsWithProcess = true;
                Thread.Builder hook = Thread.ofPlatform().inheritInheritableThreadLocals(false);
                Runtime.getRuntime().addShutdownHook(hook.unstarted(this::end));
            }
        }

        /** The process ends: peers need not come for that. */
        void end() {
            NvshmemWorld world = current;
            if (world != null) {
                world.nvshmem.endWithProcess();
            }
        }
    }

    /** Memory, and whether this rank still uses it. */
    private static final class Block {
        private final long address;
        private volatile boolean used = true;

        Block(long address) {
            this.address = address;
        }
    }

    /** Where a rank stands when a buffer needs a world. */
    private enum Standing {
        /** It is in none. */
        NONE,
        /** It is in this one. */
        SAME,
        /** It is in another, which nobody uses here. */
        OTHER
    }

    /**
     * Joins the world that a buffer needs; collective over the communicator, as {@link
     * Nvshmem#open}. If this process is in another, which no buffer uses any more, that is ended
     * first.
     *
     * @throws DeepEpUnavailableException on every rank, naming those that cannot, with causes and
     *     cure
     */
    public static NvshmemWorld join(
            NvshmemInstallation installation,
            NvshmemOptions options,
            PeMap peMap,
            CudaContext context,
            Communicator communicator,
            Duration timeout) {
        return join(
                PROCESS,
                options,
                peMap,
                meeting(communicator, timeout),
                () -> Nvshmem.open(installation, options, peMap, context, communicator, timeout));
    }

    /** The same, of a process of which there may be several in one. */
    static NvshmemWorld join(
            Slot slot,
            NvshmemOptions options,
            PeMap peMap,
            Meeting meeting,
            Supplier<Nvshmem> start) {
        boolean alone = slot.joining.tryLock();
        try {
            Standing all = agree(slot, alone, options, peMap, meeting);
            if (all == Standing.SAME) {
                NvshmemWorld current = slot.current;
                meeting.step(current::tryConnections);
                return current;
            }
            if (all == Standing.OTHER) {
                slot.current.nvshmem.close();
            }
            slot.current = null;
            Nvshmem started = start.get();
            slot.keep(new NvshmemWorld(options, started));
            try {
                meeting.step(started::meet);
            } catch (RuntimeException unfit) {
                started.abandon(); // or the next to join would find it as good as any
                throw unfit;
            }
            return slot.current;
        } finally {
            if (alone) {
                slot.joining.unlock();
            }
        }
    }

    /** Where all ranks stand, which must be the same place. */
    private static Standing agree(
            Slot slot, boolean alone, NvshmemOptions options, PeMap peMap, Meeting meeting) {
        List<String> standings =
                meeting.together(
                        () -> {
                            if (!alone) {
                                throw new DeepEpUnavailableException(
                                        "another rank of its process joins NVSHMEM, which allows one rank per process",
                                        "start one process per rank (deepep launch)");
                            }
                            NvshmemWorld current = slot.current;
                            return (current == null
                                            ? Standing.NONE
                                            : current.standing(options, peMap))
                                    .name();
                        });
        if (standings.stream().distinct().count() > 1) {
            throw new DeepEpUnavailableException(
                    "ranks have different worlds of NVSHMEM open; by rank: " + standings,
                    "start all processes again");
        }
        return Standing.valueOf(standings.getFirst());
    }

    static Meeting meeting(Communicator communicator, Duration timeout) {
        return NvshmemStartup.meeting(communicator, timeout, "NVSHMEM cannot be used");
    }

    /** A queue that has failed stays so: better learnt now than by the first call's time-out. */
    private void tryConnections() {
        try {
            nvshmem.barrier();
        } catch (DeepEpException e) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM's connections are broken: " + e.getMessage(),
                    "start all processes again",
                    e);
        }
    }

    private Standing standing(NvshmemOptions wanted, PeMap peMap) {
        if (nvshmem.isClosed()) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM was given up in this process", "start all processes again");
        }
        if (options.serves(wanted) && nvshmem.peMap().hasSamePes(peMap)) {
            return Standing.SAME;
        }
        long numUsed = blocks.values().stream().filter(block -> block.used).count();
        if (numUsed > 0) {
            throw new IllegalStateException(
                    ("%s open buffers use NVSHMEM with %s; close them, or use the same network options and open the"
                                    + " buffer that needs the most queues first")
                            .formatted(numUsed, options));
        }
        return Standing.OTHER;
    }

    /**
     * Allocates memory at the same offset on every PE, after freeing what all ranks have given
     * back; collective over the communicator.
     *
     * @return the allocation's number, for {@link #address} and {@link #release}
     */
    public int allocate(
            long numBytes, long alignment, Communicator communicator, Duration timeout) {
        Meeting meeting = meeting(communicator, timeout);
        freeReleased(meeting);
        int number = numAllocations.getAndIncrement();
        List<String> refusals =
                meeting.together(
                        () -> {
                            try {
                                blocks.put(
                                        number, new Block(nvshmem.allocate(numBytes, alignment)));
                                return "";
                            } catch (NativeCallException refused) {
                                return refused.getMessage();
                            }
                        });
        requireAll(refusals);
        return number;
    }

    /** If only some got theirs, later allocations would have other offsets there. */
    private void requireAll(List<String> refusals) {
        String refused =
                IntStream.range(0, refusals.size())
                        .filter(rank -> !refusals.get(rank).isEmpty())
                        .mapToObj(rank -> "rank " + rank + ": " + refusals.get(rank))
                        .collect(Collectors.joining("; "));
        if (refused.isEmpty()) {
            return;
        }
        if (refusals.contains("")) {
            nvshmem.abandon();
        }
        throw new DeepEpUnavailableException(
                "NVSHMEM has no such memory: " + refused,
                "lower the limits of the buffer, or free device memory");
    }

    /** Freeing is collective: only what no rank uses any more, in the same order everywhere. */
    private void freeReleased(Meeting meeting) {
        List<String> released =
                meeting.together(
                        () ->
                                blocks.entrySet().stream()
                                        .filter(entry -> !entry.getValue().used)
                                        .map(entry -> entry.getKey().toString())
                                        .collect(Collectors.joining(" ")));
        Set<Integer> byAll = new TreeSet<>(blocks.keySet());
        for (String numbers : released) {
            byAll.retainAll(
                    Stream.of(numbers.split(" "))
                            .filter(number -> !number.isEmpty())
                            .map(Integer::valueOf)
                            .toList());
        }
        for (int number : byAll) {
            nvshmem.free(blocks.remove(number).address);
        }
    }

    /** Address of an allocation on this rank. */
    public long address(int allocation) {
        return blocks.get(allocation).address;
    }

    /**
     * Address through which this rank's GPU reaches a rank's part of an allocation directly.
     *
     * @return empty if the rank is not in this world, or only NVSHMEM reaches it
     */
    public OptionalLong peerAddress(int allocation, int rank) {
        return nvshmem.peMap().includes(rank)
                ? nvshmem.peerAddress(blocks.get(allocation).address, rank)
                : OptionalLong.empty();
    }

    /** Gives an allocation back. Waits for nobody; peers may go on using this rank's part. */
    public void release(int allocation) {
        blocks.get(allocation).used = false;
    }

    /** In stream order: all that kernels of this process sent has arrived. Returns at once. */
    public void quiet(CudaStream stream) {
        nvshmem.quiet(stream);
    }

    /**
     * Device code that calls NVSHMEM, made part of this world; loaded once.
     *
     * @param name of the code
     * @param load loads it onto this process's GPU
     */
    public CudaModule load(String name, Supplier<CudaModule> load) {
        return modules.computeIfAbsent(
                name,
                missing -> {
                    CudaModule module = load.get();
                    nvshmem.register(module);
                    return module;
                });
    }
}
