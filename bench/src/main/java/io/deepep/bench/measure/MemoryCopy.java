package io.deepep.bench.measure;

import io.deepep.bench.run.RankTeam;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What this machine's memory can do: every processor copies memory of its own that no cache holds.
 * The yardstick of the host backend, measured in the same run.
 */
public final class MemoryCopy {
    private static final long BLOCK_BYTES = 128L << 20;
    private static final int ROUNDS = 9;

    private MemoryCopy() {}

    /** Bytes read plus bytes written per second, median of several rounds. */
    public static double bytesPerSecond() {
        int threads = Runtime.getRuntime().availableProcessors();
        try (RankTeam team = RankTeam.start(threads);
                Arena arena = Arena.ofShared()) {
            MemorySegment[] from = new MemorySegment[threads];
            MemorySegment[] to = new MemorySegment[threads];
            team.run(
                    thread -> {
                        from[thread] = arena.allocate(BLOCK_BYTES, 128).fill((byte) 1);
                        to[thread] = arena.allocate(BLOCK_BYTES, 128).fill((byte) 2);
                    });
            Samples copies =
                    Samples.measure(
                            team,
                            1,
                            ROUNDS,
                            thread ->
                                    MemorySegment.copy(
                                            from[thread], 0, to[thread], 0, BLOCK_BYTES));
            return copies.bytesPerSecond(2 * BLOCK_BYTES * threads);
        }
    }
}
