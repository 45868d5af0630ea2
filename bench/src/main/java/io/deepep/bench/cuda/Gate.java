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
        this(
                module,
                timeout,
                rank,
                flags.addresses(rank).stream()
                        .limit(numRanks)
                        .mapToLong(Long::longValue)
                        .toArray());
    }

    /**
     * A gate that waits for nobody, over flags of its own.
     *
     * @param flagsAddress of {@link #FLAGS_BYTES}, zero
     */
    static Gate open(BenchModule module, long flagsAddress, Duration timeout) {
        return new Gate(module, timeout, 0, new long[] {flagsAddress});
    }

    private Gate(BenchModule module, Duration timeout, int rank, long[] flags) {
        Arena arena = Arena.ofAuto();
        this.module = module;
        this.params = BenchStructs.GATE.allocate(arena);
        this.launch = new LaunchConfig(arena, 1, THREADS);
        for (int peer = 0; peer < flags.length; peer++) {
            params.set("flags", peer, flags[peer]);
        }
        params.set("timeout_ns", timeout.toNanos())
                .setInt("rank", rank)
                .setInt("num_ranks", flags.length);
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
