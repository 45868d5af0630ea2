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
 * Ranks of the host backend that stay alive between invocations of one operation, which is compared
 * with the memory-copy bandwidth of the same run. Both count as a copy counts itself: a byte that
 * is moved is a byte read and a byte written.
 */
@State(Scope.Benchmark)
public abstract class HostRanks {
    private static final double GIGA = 1e9;

    private Operation operation;
    private long nanos;
    private long runs;

    /**
     * An operation that is run by all ranks at once.
     *
     * @param closing closes the ranks' buffers
     * @param movedBytes bytes that one run reads and writes, a read and a write for each row moved
     * @param leastBytes what would be left if caches held every source: each distinct row once
     */
    record Operation(
            Runnable closing,
            RankTeam team,
            RankTeam.Work work,
            long movedBytes,
            long leastBytes) {}

    /** The operation, on buffers that are open and verified. */
    abstract Operation operation();

    /** Opens the buffers and verifies. */
    @Setup
    public void open() {
        operation = operation();
    }

    /** One collective operation on all ranks. */
    void run() {
        long start = System.nanoTime();
        operation.team().run(operation.work());
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
        nanos = 0;
        runs = 0;
        System.out.printf(
                Locale.ROOT,
                "[%.0f %% of memory copy (%.2f of %.2f GB/s read + written; %.0f %% if every distinct row counts once)] ",
                100 * operation.movedBytes() / seconds / copy,
                operation.movedBytes() / seconds / GIGA,
                copy / GIGA,
                100 * operation.leastBytes() / seconds / copy);
    }

    /** Closes the buffers. */
    @TearDown
    public void close() {
        operation.closing().run();
    }
}
