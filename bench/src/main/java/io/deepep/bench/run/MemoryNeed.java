package io.deepep.bench.run;

import io.deepep.bench.text.Decimals;
import io.deepep.spi.posix.AvailableMemory;

/** Refuses jobs whose memory cannot fit, before they make the machine swap or die. */
public final class MemoryNeed {
    private static final double GIB = 1L << 30;

    private MemoryNeed() {}

    /**
     * Checks.
     *
     * @param perRank bytes that each rank will touch
     * @throws UsageException if all ranks together need more than is available
     */
    public static void require(int numRanks, long perRank) {
        double needed = (double) perRank * numRanks; // may be more than a long holds
        long available = AvailableMemory.bytes();
        if (needed > available) {
            throw new UsageException(
                    ("%s ranks x %s of tokens or buffers need %s, but this machine has %s available;"
                                    + " lower --num-tokens, --hidden, --sms or the number of ranks")
                            .formatted(numRanks, gib(perRank), gib(needed), gib(available)));
        }
    }

    /**
     * Checks that the ranks' buffers fit where they will be.
     *
     * @param buffer bytes of each rank's
     * @param tensors roughly the bytes that each rank takes of a GPU besides
     * @throws UsageException if they do not
     */
    public static void requireBuffers(Job job, long buffer, long tensors) {
        if (job.placement().isCuda()) {
            requireOnGpus(job.placement(), job.numRanks(), buffer + tensors);
        } else {
            require(job.placement().ranksPerHost(job.numRanks()), buffer);
        }
    }

    private static void requireOnGpus(Placement placement, int numRanks, long perRank) {
        int ranks = placement.ranksPerGpu(numRanks);
        double needed = (double) perRank * ranks;
        long has = placement.gpu().memoryBytes();
        if (needed > has) {
            throw new UsageException(
                    ("%s ranks on a GPU x %s of buffers and tokens need %s, but %s has %s;"
                                    + " lower --num-tokens or the number of ranks, or use more GPUs")
                            .formatted(
                                    ranks,
                                    gib(perRank),
                                    gib(needed),
                                    placement.gpu().name(),
                                    gib(has)));
        }
    }

    /**
     * Checks that arrays fit the Java heap.
     *
     * @param what they hold, for the complaint
     * @throws UsageException if they do not
     */
    public static void requireHeap(String what, double needed) {
        Runtime runtime = Runtime.getRuntime();
        long has = runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory();
        if (needed > has) {
            throw new UsageException(
                    "%s need %s of Java heap, but %s are left; raise it with DEEPEP_JAVA_OPTS=-Xmx..."
                            .formatted(what, gib(needed), gib(has)));
        }
    }

    private static String gib(Number bytes) {
        return Decimals.of("%.1f GiB", bytes.doubleValue() / GIB);
    }
}
