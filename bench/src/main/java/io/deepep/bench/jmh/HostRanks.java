package io.deepep.bench.jmh;

import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.run.RankTeam;
import java.util.Locale;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Ranks of the host backend that stay alive between invocations of one call, which is compared with
 * the memory-copy bandwidth of the same run. Both count as a copy counts itself: a byte that is
 * moved is a byte read and a byte written.
 */
@State(Scope.Benchmark)
public abstract class HostRanks {
    private static final double GIGA = 1e9;

    private HostCall.Ready ready;
    private RankTeam.Work work;
    private long nanos;
    private long runs;

    /** What is called, by ranks that are ready. */
    abstract HostCall.Ready ready();

    /** Opens the buffers and verifies. */
    @Setup
    public void open() {
        ready = ready();
        work = ready.call().operation().synchronous();
    }

    /** One collective operation on all ranks. */
    void run() {
        long start = System.nanoTime();
        ready.team().run(work);
        nanos += System.nanoTime() - start;
        runs++;
    }

    /**
     * Prints the share that the runs of the iteration reached, of the copy bandwidth measured now:
     * what else the machine does changes both in the same way.
     */
    @TearDown(Level.Iteration)
    public void report() {
        double seconds = nanos * 1e-9 / runs;
        double copy = MemoryCopy.bytesPerSecond();
        double moved = ready.movedBytes() / seconds;
        // If caches held every source, each distinct row would be moved once.
        double least = ready.call().total().moved() / seconds;
        nanos = 0;
        runs = 0;
        System.out.printf(
                Locale.ROOT,
                "[%.0f %% of memory copy (%.2f of %.2f GB/s read + written; %.0f %% if every distinct row counts once)] ",
                100 * moved / copy,
                moved / GIGA,
                copy / GIGA,
                100 * least / copy);
    }

    /** Closes the buffers. */
    @TearDown
    public void close() throws Exception {
        ready.buffers().close();
    }
}
