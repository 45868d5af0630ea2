package io.deepep.bench.cuda;

import io.deepep.EpTopology;
import io.deepep.bench.run.Session;
import io.deepep.buffer.CudaHeaps;
import io.deepep.cuda.CudaContext;
import java.util.List;

/** Zeroed device memory of every rank that kernels of all ranks reach, as a buffer's is. */
final class PeerMemory implements AutoCloseable {
    private final Session session;
    private final List<CudaHeaps> heaps;

    private PeerMemory(Session session, List<CudaHeaps> heaps) {
        this.session = session;
        this.heaps = heaps;
    }

    /**
     * Allocates {@code bytes} for each rank.
     *
     * @param contexts of local ranks
     */
    static PeerMemory allocate(Session session, List<CudaContext> contexts, long bytes) {
        return new PeerMemory(
                session,
                session.team()
                        .ask(
                                rank ->
                                        CudaHeaps.open(
                                                ranks(session, rank), contexts.get(rank), bytes)));
    }

    private static CudaHeaps.Ranks ranks(Session session, int rank) {
        int numRanks = session.job().numRanks();
        return new CudaHeaps.Ranks(
                session.communicator(rank),
                new EpTopology(rank, numRanks, session.job().topology().numNvlRanks()),
                session.job().timeout());
    }

    /** Every rank's memory as the GPU of the local {@code rank} sees it. */
    List<Long> addresses(int rank) {
        return heaps.get(rank).addresses();
    }

    /** Frees all; no kernel may be running. */
    @Override
    public void close() {
        session.team().run(rank -> heaps.get(rank).close());
    }
}
