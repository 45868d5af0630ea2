package io.deepep.bench.chaos;

import io.deepep.cuda.memory.CudaMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongBinaryOperator;
import java.util.stream.Stream;

/**
 * What a process holds, so that runs which leave something behind are seen.
 *
 * @param descriptors open files and sockets
 * @param threads of Java
 * @param mappings of shared memory
 * @param deviceBytes of GPU memory, its own and what it has mapped of others
 */
public record Usage(long descriptors, long threads, long mappings, long deviceBytes) {
    static final Usage NOTHING = new Usage(0, 0, 0, 0);

    /** What a process may hold more without having leaked: Java's own threads and files. */
    static final Usage TOLERATED =
            new Usage(16, 8 + Runtime.getRuntime().availableProcessors(), 0, 0);

    /** Threads that end by themselves may take so long. */
    private static final int SETTLE_MILLIS = 20;

    private static final int SETTLE_STEPS = 50;

    /** In a line of /proc/self/maps, from the space before the permissions. */
    private static final int SHARED_FLAG = 4;

    /** GPU memory is freed by another thread, which waits for the driver. */
    private static final int FEWEST_STEPS_ON_GPUS = 10;

    /** Once what is ending has ended: the least of several looks within a second. */
    static Usage ofThisProcess(boolean usesGpus) {
        Usage least = look(usesGpus);
        int fewest = usesGpus ? FEWEST_STEPS_ON_GPUS : 2;
        for (int step = 0; step < SETTLE_STEPS; step++) {
            try {
                Thread.sleep(SETTLE_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return least;
            }
            Usage now = look(usesGpus);
            if (now.equals(least) && step >= fewest) {
                return least;
            }
            least = least.with(now, Math::min);
        }
        return least;
    }

    private static Usage look(boolean usesGpus) {
        if (usesGpus) {
            System.gc(); // GPU memory goes with the tensors over it
        }
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"));
                Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return new Usage(
                    files.count(),
                    ManagementFactory.getThreadMXBean().getThreadCount(),
                    maps.filter(Usage::isSharedMemory).count(),
                    usesGpus ? CudaMemory.heldBytes() : 0);
        } catch (IOException unknown) {
            throw new UncheckedIOException(unknown);
        }
    }

    /** Code may lie in memory without a name in any folder too, but is mapped privately. */
    static boolean isSharedMemory(String mapping) {
        boolean shared = mapping.charAt(mapping.indexOf(' ') + SHARED_FLAG) == 's';
        return shared && (mapping.contains("/memfd:") || mapping.contains("/dev/shm/"));
    }

    /** The larger of each. */
    Usage max(Usage other) {
        return with(other, Math::max);
    }

    /** What is held beyond {@code before}. */
    Usage since(Usage before) {
        return with(before, (now, then) -> now - then);
    }

    private Usage with(Usage other, LongBinaryOperator each) {
        return new Usage(
                each.applyAsLong(descriptors, other.descriptors),
                each.applyAsLong(threads, other.threads),
                each.applyAsLong(mappings, other.mappings),
                each.applyAsLong(deviceBytes, other.deviceBytes));
    }

    /** Whether there is more of anything. */
    boolean exceeds(Usage other) {
        return descriptors > other.descriptors
                || threads > other.threads
                || mappings > other.mappings
                || deviceBytes > other.deviceBytes;
    }

    @Override
    public String toString() {
        return "%d descriptors, %d threads, %d mappings of shared memory and %d bytes of GPU memory"
                .formatted(descriptors, threads, mappings, deviceBytes);
    }
}
