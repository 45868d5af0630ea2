package io.deepep.bench.chaos;

import io.deepep.cuda.memory.CudaMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * What a process holds, so that runs which leave something behind are seen.
 *
 * @param descriptors open files and sockets
 * @param threads of Java
 * @param mappings of shared memory
 * @param deviceBytes of GPU memory, its own and what it has mapped of others
 */
public record Usage(long descriptors, int threads, long mappings, long deviceBytes) {
    static final Usage NOTHING = new Usage(0, 0, 0, 0);

    /** What a process may hold more without having leaked: Java's own threads and files. */
    static final Usage TOLERATED =
            new Usage(16, 8 + Runtime.getRuntime().availableProcessors(), 0, 0);

    /** Threads that end by themselves may take so long. */
    private static final int SETTLE_MILLIS = 20;

    private static final int SETTLE_STEPS = 50;

    /** Once what is ending has ended: the least of several looks within a second. */
    static Usage ofThisProcess(boolean usesGpus) {
        Usage least = look(usesGpus);
        for (int step = 0; step < SETTLE_STEPS; step++) {
            try {
                Thread.sleep(SETTLE_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return least;
            }
            Usage now = look(usesGpus);
            if (now.equals(least) && step > 1) {
                return least;
            }
            least = least.min(now);
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
                    maps.filter(line -> line.contains("/memfd:") || line.contains("/dev/shm/"))
                            .count(),
                    usesGpus ? CudaMemory.heldBytes() : 0);
        } catch (IOException unknown) {
            throw new UncheckedIOException(unknown);
        }
    }

    private Usage min(Usage other) {
        return new Usage(
                Math.min(descriptors, other.descriptors),
                Math.min(threads, other.threads),
                Math.min(mappings, other.mappings),
                Math.min(deviceBytes, other.deviceBytes));
    }

    /** The larger of each. */
    Usage max(Usage other) {
        return new Usage(
                Math.max(descriptors, other.descriptors),
                Math.max(threads, other.threads),
                Math.max(mappings, other.mappings),
                Math.max(deviceBytes, other.deviceBytes));
    }

    /** What is held beyond {@code before}. */
    Usage since(Usage before) {
        return new Usage(
                descriptors - before.descriptors,
                threads - before.threads,
                mappings - before.mappings,
                deviceBytes - before.deviceBytes);
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
