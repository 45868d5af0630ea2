package io.deepep.bench.cuda;

import io.deepep.bench.run.RankTeam;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaMemory;
import java.util.List;

/**
 * Zeroed device memory of every rank that kernels of all ranks reach. The ranks are threads of one
 * process whose open buffers have enabled access between their GPUs.
 */
final class PeerMemory implements AutoCloseable {
    private final RankTeam team;
    private final List<CudaMemory> memories;

    private PeerMemory(RankTeam team, List<CudaMemory> memories) {
        this.team = team;
        this.memories = memories;
    }

    /** Allocates {@code bytes} for each rank. */
    static PeerMemory allocate(RankTeam team, List<CudaContext> contexts, long bytes) {
        List<CudaMemory> memories =
                team.ask(
                        rank -> {
                            CudaMemory memory = CudaMemory.allocate(contexts.get(rank), bytes);
                            memory.clear();
                            return memory;
                        });
        return new PeerMemory(team, memories);
    }

    /** One rank's memory, the same address on every GPU. */
    CudaMemory of(int rank) {
        return memories.get(rank);
    }

    /** Frees all; no kernel may be running. */
    @Override
    public void close() {
        team.run(rank -> memories.get(rank).close());
    }
}
