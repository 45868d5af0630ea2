package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import java.lang.foreign.Arena;
import java.time.Duration;

/**
 * One rank's side of {@code bench_gate.cu}: holds a stream until those of all its ranks have come,
 * and a little longer, so that the host has enqueued what follows before it starts.
 */
final class StreamGate implements AutoCloseable {
    private static final int THREADS = 32;

    private final BenchModule module;
    private final KernelStruct.Params params;
    private final LaunchConfig launch;
    private long epoch;

    /**
     * A gate; every rank makes one over the same flags.
     *
     * @param flags u64 [numRanks] on this GPU: where {@link #flagsBytes} of each rank are
     * @param rank among those that wait for each other
     */
    StreamGate(CudaContext context, long flags, int rank, int numRanks, Duration timeout) {
        this(context);
        params.set("flags", flags)
                .set("timeout_ns", timeout.toNanos())
                .setInt("rank", rank)
                .setInt("num_ranks", numRanks);
    }

    /** A gate that waits for nobody: the smallest kernel there is. */
    StreamGate(CudaContext context) {
        Arena arena = Arena.ofAuto();
        this.module = BenchModule.load(context, "gate");
        this.params = BenchStructs.GATE.allocate(arena);
        this.launch = new LaunchConfig(arena, 1, THREADS);
    }

    /** Flags that a rank shows the others. */
    static long flagsBytes(int numRanks) {
        return (long) numRanks * BenchStructs.FLAG_STRIDE_BYTES;
    }

    /** Enqueues the gate; all ranks do, as often as each other. */
    void enqueue(CudaStream stream, Duration pause) {
        epoch++;
        params.set("epoch", epoch).set("pause_ns", pause.toNanos());
        launch(stream);
    }

    /** Enqueues it once more as it was, which an open gate may be. */
    void launch(CudaStream stream) {
        module.function().launch(launch, params.memory(), stream);
    }

    @Override
    public void close() {
        module.close();
    }
}
