package io.deepep.bench.cuda;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;
import java.time.Duration;

/**
 * One rank's side of {@code bench_gate.cu}: holds a stream until the streams of all ranks have
 * come, and a little longer, so that the host has enqueued what follows before it starts.
 */
final class Gate implements AutoCloseable {
    static final long FLAGS_BYTES = 8 * 128;

    private static final long PARAMS_BYTES = 96;
    private static final long FLAGS_AT = 0;
    private static final long EPOCH_AT = 64;
    private static final long PAUSE_AT = 72;
    private static final long TIMEOUT_AT = 80;
    private static final long RANK_AT = 88;
    private static final long NUM_RANKS_AT = 92;
    private static final int THREADS = 32;

    private final BenchModule module;
    private final KernelParams params;
    private final LaunchConfig launch;
    private long epoch;

    /**
     * A gate; every rank makes one over the same flags.
     *
     * @param flags {@value #FLAGS_BYTES} bytes of each rank
     */
    Gate(BenchModule module, PeerMemory flags, int rank, int numRanks, Duration timeout) {
        Arena arena = Arena.ofAuto();
        this.module = module;
        this.params = KernelParams.struct(arena, PARAMS_BYTES, Long.BYTES);
        this.launch = new LaunchConfig(arena, 1, THREADS);
        for (int peer = 0; peer < numRanks; peer++) {
            params.setLong(FLAGS_AT + 8L * peer, flags.of(peer).address());
        }
        params.setLong(TIMEOUT_AT, timeout.toNanos())
                .setInt(RANK_AT, rank)
                .setInt(NUM_RANKS_AT, numRanks);
    }

    /** Enqueues the gate; all ranks do, as often as each other. */
    void enqueue(CudaStream stream, Duration pause) {
        epoch++;
        params.setLong(EPOCH_AT, epoch).setLong(PAUSE_AT, pause.toNanos());
        module.function().launch(launch, params, stream);
    }

    @Override
    public void close() {
        module.close();
    }
}
