package io.deepep.normal;

import io.deepep.EpTopology;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * How the blocks of a combine across nodes divide the work. Home blocks compute a rank's own
 * tokens: of each they load the rows of its node and a sum from every other node. Summing blocks
 * load, for each token of the rank's peers, the rows that lie on this node; that they also put the
 * sum into a ring hardly shows, because stores do not wait.
 *
 * <p>Token {@code t} travels by the ring of channel {@code t % numChannels}, which one home block
 * and one summing block share.
 *
 * @param numHomeBlocks the first ones of the launch
 */
public record CombineRoles(int numHomeBlocks, int numSummingBlocks) {
    /** Selections of a token; more or fewer shift the balance little. */
    private static final int TYPICAL_TOPK = 8;

    /**
     * How much longer than the best division another may take by its loads to be preferred for
     * having fewer rings. Measured on 2 x 2 GPUs with 24 blocks: 16 and 8, which share 16 rings,
     * take 591 us where 15 and 9 with 45 rings take 614, though their loads take 1.125 times as
     * long.
     */
    private static final double WORTH_FEWER_RINGS = 1.15;

    /**
     * The division that ends first if all ranks are chosen equally often, the same on all ranks:
     * the role with the most to load per block has the least. Of nearly equal ones that with the
     * fewest rings.
     */
    public static CombineRoles of(int numSms, EpTopology topology) {
        int mostChannels = numSms / 2 * RingShape.MOST_COMBINE_RINGS;
        List<CombineRoles> all =
                IntStream.range(1, numSms)
                        .mapToObj(home -> new CombineRoles(home, numSms - home))
                        .filter(roles -> roles.numChannels() <= mostChannels)
                        .toList();
        ToDoubleFunction<CombineRoles> time = roles -> roles.time(topology);
        double least = all.stream().mapToDouble(time).min().orElseThrow();
        return all.stream()
                .filter(roles -> time.applyAsDouble(roles) <= least * WORTH_FEWER_RINGS)
                .min(Comparator.comparingInt(CombineRoles::numChannels).thenComparingDouble(time))
                .orElseThrow();
    }

    /** What the busier role loads per block, in rows of a token. */
    private double time(EpTopology topology) {
        int nodes = topology.numRdmaRanks(), perNode = topology.numNvlRanks();
        double rows = perNode * reached(topology.numRanks());
        double parts = (nodes - 1) * reached(nodes);
        return Math.max((rows + parts) / numHomeBlocks, (nodes - 1) * rows / numSummingBlocks);
    }

    /** The probability that a token goes to one of {@code places} at least once. */
    private static double reached(int places) {
        return 1 - StrictMath.pow(1 - 1.0 / places, TYPICAL_TOPK);
    }

    /** Rings for each peer: the least common multiple, so that each has one writer and reader. */
    public int numChannels() {
        int a = numHomeBlocks, b = numSummingBlocks;
        while (b != 0) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        return numHomeBlocks / a * numSummingBlocks;
    }

    /** Channels of a summing block. */
    public int channelsPerSummingBlock() {
        return numChannels() / numSummingBlocks;
    }

    /** The most channels of one block. */
    public int mostChannels() {
        return numChannels() / Math.min(numHomeBlocks, numSummingBlocks);
    }
}
