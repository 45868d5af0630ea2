package io.deepep.bench.jmh;

import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.run.RankTeam;
import java.util.Locale;

/**
 * An operation that is compared with the memory-copy bandwidth of the same run. Both count as a
 * copy counts itself: a byte that is moved is a byte read and a byte written.
 */
final class MeasuredOperation implements AutoCloseable {
    private static final double GIGA = 1e9;

    private final Runnable closing;
    private final RankTeam team;
    private final RankTeam.Work work;
    private final long movedBytes;
    private final long leastBytes;
    private long nanos;
    private long runs;

    /**
     * An operation that is run by all ranks at once.
     *
     * @param closing closes the ranks' buffers
     * @param movedBytes bytes that one run reads and writes, a read and a write for each row moved
     * @param leastBytes what would be left if caches held every source: each distinct row once
     */
    MeasuredOperation(
            Runnable closing, RankTeam team, RankTeam.Work work, long movedBytes, long leastBytes) {
        this.closing = closing;
        this.team = team;
        this.work = work;
        this.movedBytes = movedBytes;
        this.leastBytes = leastBytes;
    }

    /** One collective operation on all ranks. */
    void run() {
        long start = System.nanoTime();
        team.run(work);
        nanos += System.nanoTime() - start;
        runs++;
    }

    /**
     * The share that the runs since the last report reached, of the copy bandwidth measured now:
     * what else the machine does changes both in the same way.
     */
    String report() {
        double seconds = nanos * 1e-9 / runs;
        double copy = MemoryCopy.bytesPerSecond();
        nanos = 0;
        runs = 0;
        return String.format(
                Locale.ROOT,
                "%.0f %% of memory copy (%.2f of %.2f GB/s read + written; %.0f %% if every distinct row counts once)",
                100 * movedBytes / seconds / copy,
                movedBytes / seconds / GIGA,
                copy / GIGA,
                100 * leastBytes / seconds / copy);
    }

    @Override
    public void close() {
        closing.run();
    }
}
