package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.EpTopology;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.Session;
import io.deepep.buffer.memory.CudaHeaps;
import io.deepep.buffer.memory.CudaHeaps.Reach;
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
    record RankPart(CudaHeaps heaps, long tableOffset) implements AutoCloseable {
        /**
         * Allocates for one rank; collective.
         *
         * @param bytes a multiple of 8
         */
        static RankPart open(HeapRanks ranks, CudaStream stream, long bytes, Reach reach) {
            long tableBytes = (long) Long.BYTES * ranks.topology().numRanks();
            RankPart part =
                    new RankPart(
                            CudaHeaps.open(ranks, stream.context(), bytes + tableBytes, reach),
                            bytes);
            part.writeTable(stream);
            return part;
        }

        long address() {
            return heaps.localAddress();
        }

        long table() {
            return address() + tableOffset;
        }

        private void writeTable(CudaStream stream) {
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
        return RankPart.open(
                ranks,
                CudaStopwatch.stream(session, rank),
                bytes,
                reachesAll(session) ? Reach.GROUP : Reach.NODE);
    }

    /** The memory of the local {@code rank}. */
    long address(int rank) {
        return parts.get(rank).address();
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
