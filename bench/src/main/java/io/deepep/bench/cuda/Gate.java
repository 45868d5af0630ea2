package io.deepep.bench.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;
import java.time.Duration;

/**
 * One rank's side of {@code bench_gate.cu}: holds a stream until the streams of all ranks have
 * come, and a little longer, so that the host has enqueued what follows before it starts.
 */
final class Gate implements AutoCloseable {
    static final long FLAGS_BYTES =
            (long) EpTopology.MAX_NVL_RANKS * BenchStructs.FLAG_STRIDE_BYTES;

    private static final int THREADS = 32;

    private final BenchModule module;
    private final KernelStruct.Params params;
    private final LaunchConfig launch;
    private long epoch;

    /**
     * A gate; every rank makes one over the same flags.
     *
     * @param flags {@link #FLAGS_BYTES} of each rank
     */
    Gate(BenchModule module, PeerMemory flags, int rank, int numRanks, Duration timeout) {
        Arena arena = Arena.ofAuto();
        this.module = module;
        this.params = BenchStructs.GATE.allocate(arena);
        this.launch = new LaunchConfig(arena, 1, THREADS);
        for (int peer = 0; peer < numRanks; peer++) {
            params.set("flags", peer, flags.addresses(rank).get(peer));
        }
        params.set("timeout_ns", timeout.toNanos())
                .setInt("rank", rank)
                .setInt("num_ranks", numRanks);
    }

    /** Enqueues the gate; all ranks do, as often as each other. */
    void enqueue(CudaStream stream, Duration pause) {
        epoch++;
        params.set("epoch", epoch).set("pause_ns", pause.toNanos());
        module.function().launch(launch, params.memory(), stream);
    }

    @Override
    public void close() {
        module.close();
    }
}
