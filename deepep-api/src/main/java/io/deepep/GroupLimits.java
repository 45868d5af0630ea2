package io.deepep;

import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The largest groups that this version runs in one mode on one kind of device. Buffers, plans and
 * reports take them from here.
 *
 * @param name the mode and the device, as messages call them
 * @param maxNvlRanks most ranks of a node that is the whole group
 * @param maxNvlRanksOfSeveral most ranks per node where there are several
 * @param maxRanks most ranks of all nodes
 * @param otherwise what else a larger group can do
 */
public record GroupLimits(
        String name, int maxNvlRanks, int maxNvlRanksOfSeveral, int maxRanks, String otherwise) {
    /** Most ranks of any group: those that layouts and plans are made for. */
    public static final int MAX_RANKS = 2048;

    /** Most ranks of low-latency mode on GPUs, which have a bit each in the masks of kernels. */
    private static final int MAX_LOW_LATENCY_RANKS_ON_GPUS = 256;

    /** Most ranks per node whose rows the kernels of normal mode forward between nodes. */
    private static final int MAX_FORWARDED_RANKS_ON_GPUS = 8;

    /** Those of normal mode. */
    public static GroupLimits normal(Device.Kind kind) {
        boolean host = kind == Device.Kind.HOST;
        return new GroupLimits(
                "normal mode" + on(kind),
                EpTopology.MAX_NVL_RANKS,
                host ? EpTopology.MAX_NVL_RANKS : MAX_FORWARDED_RANKS_ON_GPUS,
                MAX_RANKS,
                "");
    }

    /** Those of low-latency mode. */
    public static GroupLimits lowLatency(Device.Kind kind) {
        boolean host = kind == Device.Kind.HOST;
        return new GroupLimits(
                "low-latency mode" + on(kind),
                EpTopology.MAX_NVL_RANKS,
                EpTopology.MAX_NVL_RANKS,
                host ? MAX_RANKS : MAX_LOW_LATENCY_RANKS_ON_GPUS,
                host ? "" : ", or normal mode");
    }

    private static String on(Device.Kind kind) {
        return kind == Device.Kind.HOST ? " on the host" : " on GPUs";
    }

    /**
     * The node size of a group whose user gave none: its ranks on one host, or the largest part
     * that divides these and that a node may have.
     */
    int nodeSize(int numRanks, int localSize) {
        if (localSize == numRanks && localSize <= maxNvlRanks) {
            return localSize;
        }
        return IntStream.iterate(Math.min(localSize, maxNvlRanksOfSeveral), size -> size - 1)
                .filter(size -> localSize % size == 0)
                .findFirst()
                .orElseThrow();
    }

    /** What a group may have, in words. */
    public String allowed() {
        boolean same = maxNvlRanks == maxNvlRanksOfSeveral;
        return "%s ranks, %s per node"
                .formatted(
                        maxRanks,
                        same
                                ? maxNvlRanks
                                : "%s on one node and %s"
                                        .formatted(maxNvlRanks, maxNvlRanksOfSeveral));
    }

    /**
     * Why a group is refused: who is too many, how many may be, and what to do; empty if it is not.
     */
    public Optional<String> refusal(EpTopology topology) {
        int mostPerNode = topology.isInternode() ? maxNvlRanksOfSeveral : maxNvlRanks;
        boolean fits = topology.numRanks() <= maxRanks;
        if (topology.numNvlRanks() <= mostPerNode && fits) {
            return Optional.empty();
        }
        return Optional.of(
                "%s takes at most %s, not %s, %s per node; use %s%s"
                        .formatted(
                                name,
                                allowed(),
                                topology.numRanks(),
                                topology.numNvlRanks(),
                                fits ? "nodes of fewer ranks (ranksPerNode)" : "smaller groups",
                                otherwise));
    }

    /**
     * Refuses a group that is too large.
     *
     * @throws IllegalArgumentException if it is
     */
    public void require(EpTopology topology) {
        refusal(topology)
                .ifPresent(
                        why -> {
                            throw new IllegalArgumentException(why);
                        });
    }
}
