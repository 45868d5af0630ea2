package io.deepep.buffer.memory;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Meeting;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Heaps of ranks in several processes of one host, each with one or several threads: every rank
 * offers its memory, and all open the offers of the others. By descriptor if the kernel lets
 * processes fetch them, else by CUDA IPC.
 */
abstract sealed class CudaProcessHeaps permits CudaDescriptorHeaps, CudaIpcHeaps {
    /** Tells this process from the others, whatever their numbers mean where they run. */
    private static final String PROCESS = UUID.randomUUID().toString();

    /** {@code -Ddeepep.cudaIpc=true}, on all ranks, leaves descriptors out. */
    private static final boolean IPC_ONLY = Boolean.getBoolean("deepep.cudaIpc");

    private static final System.Logger LOG = System.getLogger(CudaProcessHeaps.class.getName());
    private static final String CURE =
            "run the ranks of a node on one host, as one user, in one PID and IPC namespace, with all of their"
                    + " GPUs visible to each; if they do already, run them as threads of one process";

    final int rank;
    final CudaContext context;
    final long numBytes;
    private final EpTopology topology;
    private final CudaHeaps.Reach reach;
    private final Meeting meeting;
    private final long mark = ThreadLocalRandom.current().nextLong();
    private CudaMemory own;
    private final List<CudaMemory> opened = new ArrayList<>();

    CudaProcessHeaps(
            CudaHeaps.Ranks ranks,
            CudaContext context,
            long numBytes,
            CudaHeaps.Reach reach,
            String way) {
        this.topology = ranks.topology();
        this.rank = topology.rank();
        this.reach = reach;
        this.context = context;
        this.numBytes = numBytes;
        this.meeting =
                new Meeting(
                        ranks.communicator(),
                        ranks.timeout(),
                        "the processes cannot share device memory by " + way,
                        CURE);
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
            CudaHeaps.Ranks ranks, CudaContext context, long numBytes, CudaHeaps.Reach reach) {
        if (IPC_ONLY) {
            return CudaIpcHeaps.create(ranks, context, numBytes, reach).meet();
        }
        try {
            return new CudaDescriptorHeaps(ranks, context, numBytes, reach).meet();
        } catch (DeepEpUnavailableException refused) {
            LOG.log(System.Logger.Level.DEBUG, "{0}; trying CUDA IPC", refused.getMessage());
            try {
                return CudaIpcHeaps.create(ranks, context, numBytes, reach).meet();
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
    abstract long accept(Offer offer);

    /** Everybody has opened the memory, or gives up. */
    abstract void withdraw();

    /** Frees this rank's memory, now that this rank uses nobody's any more. */
    abstract void release(CudaMemory memory);

    /** Keeps a peer's memory open until this rank closes, and gives its address. */
    final long keep(CudaMemory memory, Offer offer) {
        opened.add(memory);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment seen = arena.allocate(ValueLayout.JAVA_LONG);
            memory.copyTo(0, seen);
            if (seen.get(ValueLayout.JAVA_LONG, 0) != offer.mark()) {
                throw new IllegalStateException("the memory it opened is not what was offered");
            }
        }
        return memory.address();
    }

    final CudaHeaps meet() {
        try {
            List<String> offers = meeting.together(this::offer);
            List<Long> addresses = new ArrayList<>();
            meeting.together(() -> openAll(offers, addresses));
            // All have looked at the mark.
            own.clear();
            return new CudaHeaps(rank, numBytes, addresses, this::close);
        } catch (RuntimeException | Error failure) {
            if (own != null) {
                close();
            }
            throw failure;
        } finally {
            withdraw();
        }
    }

    private String offer() {
        try {
            own = allocate();
        } catch (NativeCallException refused) {
            throw new DeepEpUnavailableException(
                    refused.getMessage(),
                    "rank "
                            + rank
                            + " needs "
                            + numBytes
                            + " bytes on "
                            + context
                            + ": free device memory there, or lower the limits of the buffer",
                    refused);
        }
        own.clear();
        try (Arena arena = Arena.ofConfined()) {
            own.copyFrom(0, arena.allocateFrom(ValueLayout.JAVA_LONG, mark));
        }
        return new Offer(PROCESS, mark, handle(own)).text();
    }

    private String openAll(List<String> offers, List<Long> addresses) {
        for (int peer = 0; peer < topology.numRanks(); peer++) {
            if (peer == rank) {
                addresses.add(own.address());
            } else if (reach.includes(topology, peer)) {
                addresses.add(accept(Offer.parse(offers.get(peer))));
            } else {
                addresses.add(0L);
            }
        }
        return "";
    }

    private void close() {
        opened.forEach(CudaMemory::close);
        release(own);
    }
}
