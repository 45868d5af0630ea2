package io.deepep.normal;

import io.deepep.DType;
import io.deepep.EpTopology;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * How the blocks of a combine across nodes divide the work. Home blocks compute a rank's own
 * tokens: of each they load the rows of its node and a sum from every other node. Summing blocks
 * load, for each token of the rank's peers, the rows that lie on this node, and put the sum into a
 * ring, cast where rows travel as FP8.
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
     * What putting a sum into a ring takes, in rows that are loaded. Fitted to 2 x 2 GPUs, as are
     * the other numbers here. In FP8, which 12 and 12 of 24 blocks combine in 349 us and 14 and 10
     * in 407, it is the cast that takes the time.
     */
    private static final double PUT_BF16 = 0.3;

    private static final double PUT_FP8 = 1;

    /**
     * How much longer than the best division another may take by this count to be preferred for
     * having more home blocks. In BF16, 16 and 8 of 24 blocks take 560 us, 12 and 12 take 632.
     */
    private static final double WORTH_MORE_HOMES = 1.15;

    /**
     * The division that ends first if all ranks are chosen equally often, the same on all ranks:
     * the role with the most to do per block has the least. Of nearly equal ones that with the most
     * home blocks. Divisions that need many rings are left out: each is short then.
     *
     * @param rowType of rows as they travel
     */
    public static CombineRoles of(int numSms, EpTopology topology, DType rowType) {
        int mostChannels = numSms / 2 * RingShape.MOST_COMBINE_RINGS;
        List<CombineRoles> all =
                IntStream.range(1, numSms)
                        .mapToObj(home -> new CombineRoles(home, numSms - home))
                        .filter(roles -> roles.numChannels() <= mostChannels)
                        .toList();
        ToDoubleFunction<CombineRoles> time = roles -> roles.time(topology, rowType);
        double least = all.stream().mapToDouble(time).min().orElseThrow();
        return all.stream()
                .filter(roles -> time.applyAsDouble(roles) <= least * WORTH_MORE_HOMES)
                .max(Comparator.comparingInt(CombineRoles::numHomeBlocks))
                .orElseThrow();
    }

    /** What the busier role does per block, in rows of a token. */
    private double time(EpTopology topology, DType rowType) {
        int nodes = topology.numRdmaRanks(), perNode = topology.numNvlRanks();
        double rows = perNode * reached(topology.numRanks());
        double parts = (nodes - 1) * reached(nodes);
        double put = rowType == DType.FP8_E4M3 ? PUT_FP8 : PUT_BF16;
        double sums = (nodes - 1) * (rows + put);
        return Math.max((rows + parts) / numHomeBlocks, sums / numSummingBlocks);
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
