package io.deepep.normal;

import io.deepep.EpTopology;

/**
 * The ranks that a rank leaves out of its calls in normal mode: it neither sends to them nor waits
 * for them. All that go on leave out the same, which they compare in the header of each call.
 */
public final class Masks {
    private final EpTopology topology;
    private int bits;

    /** None, as yet. */
    public Masks(EpTopology topology) {
        this.topology = topology;
    }

    /** Leaves a rank out, or takes it back. */
    public void update(int rank, boolean masked) {
        if (topology.isInternode()) {
            throw new UnsupportedOperationException(
                    "normal mode masks ranks on one node only, and this group has "
                            + topology.numRdmaRanks()
                            + " nodes; open a buffer over the ranks that are left");
        }
        bits = masked ? bits | 1 << rank : bits & ~(1 << rank);
    }

    /** Whether a rank is left out. */
    public boolean contains(int rank) {
        return !topology.isInternode() && (bits >>> rank & 1) != 0;
    }

    /** Bit r for rank r. */
    public int bits() {
        return bits;
    }
}
