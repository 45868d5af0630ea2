package io.deepep.normal.cuda;

import io.deepep.EpTopology;

/**
 * How the blocks of a combine across nodes divide the work. Home blocks bring home a rank's own
 * tokens: of each they load the rows of its node and a sum from every other node. Summing blocks
 * load, for each token of the rank's peers, the rows that lie on this node; that they also put the
 * sum into a ring hardly shows, because stores do not wait.
 *
 * <p>Token {@code t} travels by the ring of channel {@code t % numChannels}, which one home block
 * and one summing block share.
 *
 * @param numHomeBlocks the first ones of the launch
 */
record CombineRoles(int numHomeBlocks, int numSummingBlocks) {
    /** Selections of a token; more or fewer shift the balance little. */
    private static final int TYPICAL_TOPK = 8;

    /**
     * The division that ends first if all ranks are chosen alike, the same on all ranks: the role
     * with the most to load per block has the least. Of equals, that with the fewest rings.
     */
    static CombineRoles of(int numSms, EpTopology topology) {
        int nodes = topology.numRdmaRanks(), perNode = topology.numNvlRanks();
        double rows = perNode * reached(topology.numRanks());
        double parts = (nodes - 1) * reached(nodes);
        CombineRoles best = null;
        double least = Double.POSITIVE_INFINITY;
        for (int home = 1; home < numSms; home++) {
            CombineRoles roles = new CombineRoles(home, numSms - home);
            double time = Math.max((rows + parts) / home, (nodes - 1) * rows / (numSms - home));
            boolean better =
                    time < least * 0.99
                            || (time < least * 1.01 && roles.numChannels() < best.numChannels());
            if (roles.numChannels() <= numSms / 2 * RingShape.MOST_RINGS && better) {
                best = roles;
                least = time;
            }
        }
        return best;
    }

    /** The probability that a token goes to one of {@code places} at least once. */
    private static double reached(int places) {
        return 1 - StrictMath.pow(1 - 1.0 / places, TYPICAL_TOPK);
    }

    /** Rings for each peer: the least common multiple, so that each has one writer and reader. */
    int numChannels() {
        int a = numHomeBlocks, b = numSummingBlocks;
        while (b != 0) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        return numHomeBlocks / a * numSummingBlocks;
    }

    /** Channels of a summing block. */
    int channelsPerSummingBlock() {
        return numChannels() / numSummingBlocks;
    }

    /** The most channels of one block. */
    int mostChannels() {
        return numChannels() / Math.min(numHomeBlocks, numSummingBlocks);
    }
}
