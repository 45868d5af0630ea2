package io.deepep.bench.run;

import io.deepep.spi.posix.AvailableMemory;
import java.util.Locale;

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
                    String.format(
                            Locale.ROOT,
                            "%d ranks x %.1f GiB of tokens or buffers need %.1f GiB, but this machine has %.1f GiB available;"
                                    + " lower --num-tokens, --hidden, --sms or the number of ranks",
                            numRanks,
                            perRank / GIB,
                            needed / GIB,
                            available / GIB));
        }
    }

    /**
     * Checks that the ranks of each GPU fit there.
     *
     * @param perRank bytes of device memory that each rank will take
     * @throws UsageException if they do not
     */
    public static void requireOnGpus(Placement placement, int numRanks, long perRank) {
        int ranks = placement.ranksPerGpu(numRanks);
        double needed = (double) perRank * ranks;
        long has = placement.gpu().memoryBytes();
        if (needed > has) {
            throw new UsageException(
                    String.format(
                            Locale.ROOT,
                            "%d ranks on a GPU x %.1f GiB of buffers and tokens need %.1f GiB, but %s has %.1f GiB;"
                                    + " lower --num-tokens or the number of ranks,"
                                    + " or use more GPUs",
                            ranks,
                            perRank / GIB,
                            needed / GIB,
                            placement.gpu().name(),
                            has / GIB));
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
                    String.format(
                            Locale.ROOT,
                            "%s need %.1f GiB of Java heap, but %.1f GiB are left; raise it with DEEPEP_JAVA_OPTS=-Xmx...",
                            what,
                            needed / GIB,
                            has / GIB));
        }
    }
}
