package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.EpTopology;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.Session;
import io.deepep.buffer.memory.CudaHeaps;
import io.deepep.cuda.CudaStream;
import io.deepep.spi.HeapRanks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Zeroed device memory of every rank that kernels of the others reach, as a buffer's is: of all
 * ranks if they {@link #reachesAll can}, else of those of its node.
 */
record PeerMemory(PerRank<RankPart> parts) implements AutoCloseable {
    /**
     * What a rank has.
     *
     * @param tableOffset in its own heap, behind what the others see: where the addresses are
     */
    record RankPart(CudaHeaps heaps, int rank, long tableOffset) implements AutoCloseable {
        long table() {
            return heaps.addresses().get(rank) + tableOffset;
        }

        void writeTable(CudaStream stream) {
            long[] addresses = heaps.addresses().stream().mapToLong(Long::longValue).toArray();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment copy = arena.allocateFrom(JAVA_LONG, addresses);
                stream.copy(table(), copy.address(), copy.byteSize());
                stream.synchronize();
            }
        }

        @Override
        public void close() {
            heaps.close();
        }
    }

    /** Whether all ranks reach each other's memory: they are on one host, or one node. */
    static boolean reachesAll(Session session) {
        Job job = session.job();
        return job.topology().numRdmaRanks() == 1 || job.placement().numHosts(job.numRanks()) == 1;
    }

    /**
     * Allocates for each rank.
     *
     * @param bytes a multiple of 8
     */
    static PeerMemory allocate(Session session, long bytes) {
        return new PeerMemory(PerRank.open(session.team(), rank -> part(session, rank, bytes)));
    }

    private static RankPart part(Session session, int rank, long bytes) {
        int numRanks = session.job().numRanks();
        HeapRanks ranks =
                new HeapRanks(
                        session.communicator(rank),
                        new EpTopology(rank, numRanks, session.job().topology().numNvlRanks()),
                        session.job().timeout());
        CudaStream stream = CudaStopwatch.stream(session, rank);
        CudaHeaps heaps =
                CudaHeaps.open(
                        ranks,
                        stream.context(),
                        bytes + (long) Long.BYTES * numRanks,
                        reachesAll(session) ? CudaHeaps.Reach.GROUP : CudaHeaps.Reach.NODE);
        RankPart part = new RankPart(heaps, rank, bytes);
        part.writeTable(stream);
        return part;
    }

    /** The memory of the local {@code rank}. */
    long address(int rank) {
        return parts.get(rank).heaps().addresses().get(rank);
    }

    /**
     * U64 [R] on the GPU of the local {@code rank}: every rank's memory as that GPU sees it; 0 of
     * those out of reach.
     */
    long table(int rank) {
        return parts.get(rank).table();
    }

    /** Frees all; no kernel may be running. */
    @Override
    public void close() {
        parts.close();
    }
}
