package io.deepep.cuda.rdma;

import java.util.ArrayList;
import java.util.List;

/**
 * What a card says that it can do, as far as kernels that drive it need it.
 *
 * @param device as {@code mlx5_0}
 * @param firmware its version
 * @param maxQueuePairs that it can have
 * @param maxEntries of a queue
 * @param numPorts that it has
 * @param maxRegionBytes that one key can cover
 * @param maxAtomicsSent in flight from a queue pair
 * @param maxAtomicsTaken in flight to a queue pair
 * @param refusal why its firmware takes no commands; empty if it does. Without them, nothing that
 *     follows is known
 * @param swapsUnderMasks whether it has the atomic that signals use: 8 bytes, exchanged under masks
 * @param relaxedOrdering whether writes may overtake each other on PCI, if memory is registered so
 * @param completionVersion of its completions
 * @param doorbellBytes of a doorbell register
 */
public record RdmaFacts(
        String device,
        String firmware,
        long maxQueuePairs,
        long maxEntries,
        int numPorts,
        long maxRegionBytes,
        int maxAtomicsSent,
        int maxAtomicsTaken,
        String refusal,
        boolean swapsUnderMasks,
        boolean relaxedOrdering,
        int completionVersion,
        long doorbellBytes) {
    private static final int KNOWN_COMPLETIONS = 1;

    /** What kernels need and the card has not; empty if they can drive it. */
    public List<String> missing() {
        if (!refusal.isEmpty()) {
            return List.of("it takes no commands of the family mlx5: " + refusal);
        }
        List<String> missing = new ArrayList<>();
        if (completionVersion != KNOWN_COMPLETIONS) {
            missing.add(
                    "its completions have version %s, not %s"
                            .formatted(completionVersion, KNOWN_COMPLETIONS));
        }
        if (!swapsUnderMasks) {
            missing.add("it does not exchange 8 bytes under masks (extended atomics)");
        }
        return missing;
    }
}
