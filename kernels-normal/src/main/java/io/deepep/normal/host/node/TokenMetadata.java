package io.deepep.normal.host.node;

import io.deepep.DispatchPlan;
import io.deepep.host.HostHeap;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What travels beside the row of one token at a time: its experts and weights, taken from the plan
 * or from a record, and written where the ranks of this node receive it. Each of them gets the
 * indices of its own experts.
 */
public final class TokenMetadata {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final HostNormalState state;
    private final HostHeap nvl;
    private final MemorySegment topkIdx;
    private final MemorySegment topkWeights;
    private final Region topk;
    private final Region weights;
    private final int numTopk;
    private final int expertsPerRank;
    private final int[] experts;

    /** The bits of f32. */
    private final int[] weightBits;

    public TokenMetadata(HostNormalState state, DispatchPlan plan, HostDispatchHandle handle) {
        this.state = state;
        this.nvl = state.context.nvl();
        this.numTopk = handle.numTopk();
        this.topkIdx = numTopk == 0 ? null : plan.topkIdx().segment();
        this.topkWeights = plan.topkWeights() == null ? null : plan.topkWeights().segment();
        this.topk = handle.recvTopk;
        this.weights = handle.recvWeights;
        this.expertsPerRank = handle.numExperts() / state.topology.numRanks();
        this.experts = new int[numTopk];
        this.weightBits = new int[numTopk];
    }

    /** Takes those of this rank's own token. */
    public void load(int ownToken) {
        long first = (long) ownToken * numTopk;
        for (int k = 0; k < numTopk; k++) {
            experts[k] =
                    (int) topkIdx.get(ValueLayout.JAVA_LONG_UNALIGNED, Long.BYTES * (first + k));
            if (topkWeights != null) {
                weightBits[k] = topkWeights.get(INT, Integer.BYTES * (first + k));
            }
        }
    }

    /** Takes those of a peer's token from {@code at} of its record. */
    public void load(MemorySegment memory, long at) {
        for (int k = 0; k < numTopk; k++) {
            experts[k] = memory.get(INT, at + (long) Integer.BYTES * k);
            if (topkWeights != null) {
                weightBits[k] = memory.get(INT, at + (long) Integer.BYTES * (numTopk + k));
            }
        }
    }

    /** Puts experts and weights into a record. */
    public void store(MemorySegment memory, long at) {
        for (int k = 0; k < numTopk; k++) {
            memory.set(INT, at + (long) Integer.BYTES * k, experts[k]);
            if (topkWeights != null) {
                memory.set(INT, at + (long) Integer.BYTES * (numTopk + k), weightBits[k]);
            }
        }
    }

    /** Writes them to {@code row} of a rank of this node. */
    public void write(int nvlRank, int row) {
        if (numTopk == 0) {
            return;
        }
        int peer = state.nodeRank(nvlRank);
        MemorySegment target = nvl.of(peer);
        long toTopk = topk.at(row);
        long toWeights = weights.at(row);
        int firstExpert = peer * expertsPerRank;
        for (int k = 0; k < numTopk; k++) {
            int expert = experts[k] - firstExpert;
            boolean local = expert >= 0 && expert < expertsPerRank;
            target.set(INT, toTopk + (long) Integer.BYTES * k, local ? expert : -1);
            if (topkWeights != null) {
                target.set(INT, toWeights + (long) Integer.BYTES * k, local ? weightBits[k] : 0);
            }
        }
    }
}
