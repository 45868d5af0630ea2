package io.deepep.bench.jmh;

import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.run.RankTeam;
import java.util.Locale;

/** An operation that is held against the memory-copy bandwidth of the same run. */
final class MeasuredOperation {
    private static final double GIGA = 1e9;

    private final RankTeam team;
    private final RankTeam.Work work;
    private final long movedBytes;
    private final double copyBytesPerSecond = MemoryCopy.bytesPerSecond();
    private long nanos;
    private long runs;

    /**
     * Measures the bandwidth of memory.
     *
     * @param movedBytes bytes that one run reads and writes
     */
    MeasuredOperation(RankTeam team, RankTeam.Work work, long movedBytes) {
        this.team = team;
        this.work = work;
        this.movedBytes = movedBytes;
    }

    /** One collective operation on all ranks. */
    void run() {
        long start = System.nanoTime();
        team.run(work);
        nanos += System.nanoTime() - start;
        runs++;
    }

    /** The share that the runs since the last report reached. */
    String report() {
        double bytesPerSecond = (double) movedBytes * runs / (nanos * 1e-9);
        nanos = 0;
        runs = 0;
        return String.format(
                Locale.ROOT,
                "%.0f %% of memory copy (%.2f of %.2f GB/s read + written)",
                100 * bytesPerSecond / copyBytesPerSecond,
                bytesPerSecond / GIGA,
                copyBytesPerSecond / GIGA);
    }
}
