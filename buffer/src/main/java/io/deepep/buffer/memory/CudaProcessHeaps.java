package io.deepep.buffer.memory;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import io.deepep.spi.Undo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Heaps of ranks in several processes, each with one or several threads: every rank offers its
 * memory, and all open the offers of the others. On one host by descriptor if the kernel lets
 * processes fetch them, else by CUDA IPC; across hosts of an NVLink domain by fabric handles.
 */
abstract sealed class CudaProcessHeaps permits CudaDescriptorHeaps, CudaFabricHeaps, CudaIpcHeaps {
    /** Tells this process from the others, whatever their numbers mean where they run. */
    private static final String PROCESS = UUID.randomUUID().toString();

    /** {@code -Ddeepep.cudaIpc=true}, on all ranks, leaves descriptors out. */
    private static final boolean IPC_ONLY = Boolean.getBoolean("deepep.cudaIpc");

    private static final System.Logger LOG = System.getLogger(CudaProcessHeaps.class.getName());
    private static final String CURE =
            "run the ranks of a node on one host, as one user, in one PID and IPC namespace, with"
                    + " all of their GPUs visible to each; if they do already, run them as threads of"
                    + " one process";

    final int rank;
    final CudaContext context;
    final long numBytes;
    private final EpTopology topology;
    private final CudaHeaps.Reach reach;
    private final String way;
    private final long mark = ThreadLocalRandom.current().nextLong();
    private CudaMemory own;

    /** What lay where the mark is, in memory that is in use. */
    private long underMark;

    /** Peers' memory, by rank. */
    private final Map<Integer, CudaMemory> opened = new HashMap<>();

    CudaProcessHeaps(
            HeapRanks ranks,
            CudaContext context,
            long numBytes,
            CudaHeaps.Reach reach,
            String way) {
        this.topology = ranks.topology();
        this.rank = topology.rank();
        this.reach = reach;
        this.context = context;
        this.numBytes = numBytes;
        this.way = way;
    }

    /** What a rank tells the others of its memory. */
    record Offer(String process, long mark, String handle) {
        private static Offer parse(String text) {
            String[] words = text.split(" ", 3);
            return new Offer(words[0], Long.parseLong(words[1]), words[2]);
        }

        private String text() {
            return process + " " + mark + " " + handle;
        }

        boolean isOfThisProcess() {
            return process.equals(PROCESS);
        }
    }

    /**
     * Allocates, zeroes, and meets the peers: collective among all ranks. Peers can reach the
     * memory once all ranks have returned.
     *
     * @throws DeepEpUnavailableException on every rank
     */
    static CudaHeaps open(
            HeapRanks ranks, CudaContext context, long numBytes, CudaHeaps.Reach reach) {
        if (reach.isAcrossHosts(ranks)) {
            return new CudaFabricHeaps(ranks, context, numBytes, reach).open(ranks);
        }
        if (!ranks.allNew()) {
            // The others would not have come so far with CUDA IPC.
            return new CudaDescriptorHeaps(ranks, context, numBytes, reach).open(ranks);
        }
        if (IPC_ONLY) {
            return new CudaIpcHeaps(ranks, context, numBytes, reach).open(ranks);
        }
        try {
            return new CudaDescriptorHeaps(ranks, context, numBytes, reach).open(ranks);
        } catch (DeepEpUnavailableException refused) {
            LOG.log(System.Logger.Level.DEBUG, "{0}; trying CUDA IPC", refused.getMessage());
            try {
                return new CudaIpcHeaps(ranks, context, numBytes, reach).open(ranks);
            } catch (DeepEpUnavailableException refusedToo) {
                throw new DeepEpUnavailableException(
                        refused.reason() + "; " + refusedToo.reason(),
                        refusedToo.cure(),
                        refusedToo);
            }
        }
    }

    /** Memory that can be offered. */
    abstract CudaMemory allocate();

    /** What peers need to open the memory; valid until {@link #withdraw}. */
    abstract String handle(CudaMemory memory);

    /** The address of a peer's memory as this GPU sees it. */
    abstract long accept(int peer, Offer offer);

    /** Whether a peer's memory can take the place of another's, at the same address. */
    boolean canReplace() {
        return true;
    }

    /** Everybody has opened the memory, or gives up. Nothing to do where a handle stays valid. */
    void withdraw() {}

    /** This rank uses nobody's memory any more. */
    void letGo() {}

    /** Frees this rank's memory, after {@link #letGo}. */
    void release(CudaMemory memory) {
        memory.close();
    }

    /** Ends what is left, once the memory is given back. */
    void end() {}

    /** Opens a peer's memory, or lets it replace what was opened of a rank that is gone. */
    final long openOrReplace(
            int peer, Offer offer, Supplier<VirtualMemory> open, Consumer<VirtualMemory> replace) {
        VirtualMemory memory = (VirtualMemory) opened.get(peer);
        if (memory == null) {
            memory = open.get();
        } else {
            replace.accept(memory);
        }
        return keep(peer, memory, offer);
    }

    /** Keeps a peer's memory open until this rank closes, and gives its address. */
    final long keep(int peer, CudaMemory memory, Offer offer) {
        opened.put(peer, memory);
        if (readFirst(memory) != offer.mark()) {
            throw new IllegalStateException("the opened memory is not the memory that was offered");
        }
        return memory.address();
    }

    private static long readFirst(CudaMemory memory) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment seen = arena.allocate(ValueLayout.JAVA_LONG);
            memory.copyTo(0, seen);
            return seen.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    private static void writeFirst(CudaMemory memory, long value) {
        try (Arena arena = Arena.ofConfined()) {
            memory.copyFrom(0, arena.allocateFrom(ValueLayout.JAVA_LONG, value));
        }
    }

    final CudaHeaps open(HeapRanks ranks) {
        try {
            List<Long> addresses = meet(ranks);
            return new CudaHeaps(
                    rank, addresses, canReplace() ? this::meet : null, () -> made().close());
        } catch (RuntimeException | Error failure) {
            made().close(failure);
            throw failure;
        }
    }

    /** New ranks make memory, and everybody opens what is new to it. */
    private List<Long> meet(HeapRanks ranks) {
        Meeting meeting =
                new Meeting(
                        ranks.communicator(),
                        ranks.timeout(),
                        "the processes cannot share device memory by " + way,
                        CURE);
        try {
            List<String> offers = meeting.together(() -> offer(ranks));
            List<Long> addresses = new ArrayList<>();
            meeting.stepOnPeers(() -> openAll(ranks, offers, addresses));
            return addresses;
        } finally {
            // All have looked at the mark, or give up.
            if (own != null) {
                writeFirst(own, underMark);
            }
            withdraw();
        }
    }

    private String offer(HeapRanks ranks) {
        if (ranks.isNew()) {
            own = allocate();
            own.clear();
        }
        underMark = readFirst(own);
        writeFirst(own, mark);
        return new Offer(PROCESS, mark, handle(own)).text();
    }

    private void openAll(HeapRanks ranks, List<String> offers, List<Long> addresses) {
        for (int peer = 0; peer < topology.numRanks(); peer++) {
            if (peer == rank) {
                addresses.add(own.address());
            } else if (!reach.includes(topology, peer)) {
                addresses.add(0L);
            } else if (ranks.isNew() || ranks.newRanks().get(peer)) {
                addresses.add(accept(peer, Offer.parse(offers.get(peer))));
            } else {
                addresses.add(opened.get(peer).address());
            }
        }
    }

    /** What to give back: peers' memory first. */
    private Undo made() {
        Undo all = new Undo();
        all.made(this, CudaProcessHeaps::end);
        if (own != null) {
            all.made(own, this::release);
        }
        all.made(this, CudaProcessHeaps::letGo);
        opened.values().forEach(memory -> all.made(memory, CudaMemory::close));
        return all;
    }
}
