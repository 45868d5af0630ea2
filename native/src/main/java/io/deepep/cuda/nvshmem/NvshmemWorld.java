package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.Meeting;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The NVSHMEM that all buffers of this process share. A process can be a PE once at a time, a start
 * takes seconds, and to end it or to free its memory all PEs must come together: so the first
 * buffer starts it, it stays until one comes that needs another, and memory that buffers have given
 * back is freed when all ranks meet for the next one.
 */
public final class NvshmemWorld implements NetworkLibrary {
    private static final Object LOCK = new Object();
    private static NvshmemWorld current;

    private final NvshmemOptions options;
    private final CudaContext context;
    private final Nvshmem nvshmem;
    private final Map<String, CudaModule> modules = new HashMap<>();

    /** Memory by the number of its allocation, which is the same on all ranks. */
    private final SortedMap<Integer, Block> blocks = new TreeMap<>();

    private int numAllocations;

    private NvshmemWorld(NvshmemOptions options, CudaContext context, Nvshmem nvshmem) {
        this.options = options;
        this.context = context;
        this.nvshmem = nvshmem;
    }

    /** Memory, and whether this rank still uses it. */
    private static final class Block {
        private final NvshmemMemory memory;
        private boolean used = true;

        Block(NvshmemMemory memory) {
            this.memory = memory;
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
        synchronized (LOCK) {
            Standing all = agree(meeting(communicator, timeout), options, peMap);
            if (all == Standing.SAME) {
                return current;
            }
            if (all == Standing.OTHER) {
                current.nvshmem.close();
                current = null;
            }
            Nvshmem started =
                    Nvshmem.open(installation, options, peMap, context, communicator, timeout);
            current = new NvshmemWorld(options, context, started);
            return current;
        }
    }

    /** Where all ranks stand, which must be the same place. */
    private static Standing agree(Meeting meeting, NvshmemOptions options, PeMap peMap) {
        List<String> standings =
                meeting.together(
                        () ->
                                (current == null ? Standing.NONE : current.standing(options, peMap))
                                        .name());
        if (standings.stream().distinct().count() > 1) {
            throw new DeepEpUnavailableException(
                    "some ranks have another NVSHMEM open than others, by rank: " + standings,
                    "start all processes again",
                    null);
        }
        return Standing.valueOf(standings.getFirst());
    }

    private static Meeting meeting(Communicator communicator, Duration timeout) {
        return new Meeting(
                communicator,
                timeout,
                "NVSHMEM cannot be used",
                "check the machine with deepep doctor");
    }

    private Standing standing(NvshmemOptions wanted, PeMap peMap) {
        if (nvshmem.isClosed()) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM was given up in this process", "start all processes again", null);
        }
        if (options.serves(wanted) && nvshmem.peMap().equals(peMap)) {
            return Standing.SAME;
        }
        long numUsed = blocks.values().stream().filter(block -> block.used).count();
        if (numUsed > 0) {
            throw new IllegalStateException(
                    "NVSHMEM runs in this process with "
                            + options
                            + ", and "
                            + numUsed
                            + " open buffers use it; close them, or use the same network options, and open the buffer that needs most queues first");
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
        synchronized (LOCK) {
            freeReleased(communicator, timeout);
            int number = numAllocations++;
            meeting(communicator, timeout)
                    .together(
                            () -> {
                                blocks.put(
                                        number, new Block(nvshmem.allocate(numBytes, alignment)));
                                return "";
                            });
            return number;
        }
    }

    /** Freeing is collective: only what no rank uses any more, in the same order everywhere. */
    private void freeReleased(Communicator communicator, Duration timeout) {
        List<String> released =
                meeting(communicator, timeout)
                        .together(
                                () ->
                                        blocks.entrySet().stream()
                                                .filter(entry -> !entry.getValue().used)
                                                .map(entry -> entry.getKey().toString())
                                                .collect(Collectors.joining(" ")));
        Set<Integer> byAll = new TreeSet<>(blocks.keySet());
        for (String numbers : released) {
            byAll.retainAll(
                    Stream.of(numbers.split(" "))
                            .filter(n -> !n.isEmpty())
                            .map(Integer::valueOf)
                            .toList());
        }
        for (int number : byAll) {
            blocks.remove(number).memory.close();
        }
    }

    /** Address of an allocation on this rank. */
    public long address(int allocation) {
        synchronized (LOCK) {
            return blocks.get(allocation).memory.address();
        }
    }

    /**
     * Address through which this rank's GPU reaches a rank's part of an allocation directly.
     *
     * @return empty if the rank is not in this world, or only NVSHMEM reaches it
     */
    public OptionalLong peerAddress(int allocation, int rank) {
        synchronized (LOCK) {
            return nvshmem.peMap().includes(rank)
                    ? blocks.get(allocation).memory.peerAddress(rank)
                    : OptionalLong.empty();
        }
    }

    /** Gives an allocation back. Waits for nobody; peers may go on using this rank's part. */
    public void release(int allocation) {
        synchronized (LOCK) {
            blocks.get(allocation).used = false;
        }
    }

    @Override
    public CudaModule load(Class<?> owner, String resource) {
        synchronized (LOCK) {
            return modules.computeIfAbsent(
                    resource,
                    name -> {
                        CudaModule module = CudaModule.loadResource(context, owner, name);
                        nvshmem.register(module);
                        return module;
                    });
        }
    }

    @Override
    public int firstPe() {
        return peOfNode(0);
    }

    @Override
    public int peStride() {
        return nvshmem.peMap().topology().isInternode() ? peOfNode(1) - peOfNode(0) : 0;
    }

    private int peOfNode(int node) {
        PeMap map = nvshmem.peMap();
        return map.peOf(map.topology().rankOf(node, map.topology().nvlRank()));
    }
}
