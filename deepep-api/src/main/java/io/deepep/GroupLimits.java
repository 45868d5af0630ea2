package io.deepep;

import java.util.Optional;

/**
 * The largest group that this version supports in a mode on a kind of device.
 *
 * @param name the mode and the kind of device, as messages call them
 * @param maxRanks most ranks of all nodes together
 * @param otherwise what a larger group can do instead, appended to the message; may be empty
 */
public record GroupLimits(String name, int maxRanks, String otherwise) {
    /** Most ranks of a group in any mode. */
    public static final int MAX_RANKS = 2048;

    /** Most ranks of low-latency mode on GPUs: each rank has a bit in the masks of kernels. */
    private static final int MAX_LOW_LATENCY_RANKS_ON_GPUS = 256;

    /** The limits of normal mode. */
    public static GroupLimits normal(Device.Kind kind) {
        return new GroupLimits("normal mode" + on(kind), MAX_RANKS, "");
    }

    /** The limits of low-latency mode. */
    public static GroupLimits lowLatency(Device.Kind kind) {
        boolean host = kind == Device.Kind.HOST;
        return new GroupLimits(
                "low-latency mode" + on(kind),
                host ? MAX_RANKS : MAX_LOW_LATENCY_RANKS_ON_GPUS,
                host ? "" : ", or normal mode");
    }

    private static String on(Device.Kind kind) {
        return kind == Device.Kind.HOST ? " on the host" : " on GPUs";
    }

    /** The limits in words, such as "256 ranks, 72 per node". */
    public String allowed() {
        return "%s ranks, %s per node".formatted(maxRanks, EpTopology.MAX_NVL_RANKS);
    }

    /**
     * The message with which a group is refused: how many ranks it has, how many are allowed, and
     * what to do. Empty if the group is not too large.
     */
    public Optional<String> refusal(EpTopology topology) {
        if (topology.numRanks() <= maxRanks) {
            return Optional.empty();
        }
        return Optional.of(
                "%s takes at most %s, but the group has %s, %s per node; use smaller groups%s"
                        .formatted(
                                name,
                                allowed(),
                                topology.numRanks(),
                                topology.numNvlRanks(),
                                otherwise));
    }

    /**
     * Requires that a group is not too large.
     *
     * @throws IllegalArgumentException with the message of {@link #refusal} if it is
     */
    public void require(EpTopology topology) {
        refusal(topology)
                .ifPresent(
                        why -> {
                            throw new IllegalArgumentException(why);
                        });
    }
}
