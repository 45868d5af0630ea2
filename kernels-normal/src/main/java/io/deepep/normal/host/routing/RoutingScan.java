package io.deepep.normal.host.routing;

import io.deepep.DispatchLayout;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.normal.Masks;
import io.deepep.normal.Rails;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Reads a rank's routing: which node ranks each token goes to, and how many tokens and selections
 * that makes. Faults in the data are noted, not thrown, because all ranks must learn of them
 * together.
 */
public final class RoutingScan {
    private final EpTopology topology;
    private final int numTokens;

    /** [T][R]. */
    private final boolean[] goes;

    public final int[] tokensPerRank;
    public final int[] selectionsPerExpert;
    private Fault fault;

    public RoutingScan(EpTopology topology, int numTokens, int numExperts) {
        this.topology = topology;
        this.numTokens = numTokens;
        this.goes = new boolean[numTokens * topology.numRanks()];
        this.tokensPerRank = new int[topology.numRanks()];
        this.selectionsPerExpert = new int[numExperts];
    }

    /** Whether {@code token} goes to {@code rank}. */
    public boolean goes(int token, int rank) {
        return goes[token * topology.numRanks() + rank];
    }

    private void set(int token, int rank, boolean on) {
        if (goes(token, rank) != on) {
            goes[token * topology.numRanks() + rank] = on;
            tokensPerRank[rank] += on ? 1 : -1;
        }
    }

    /** Whether {@code token} goes to any rank of {@code node}. */
    public boolean goesTo(int token, int node) {
        return numRanks(token, node) > 0;
    }

    /** How many ranks of {@code node} it goes to. */
    int numRanks(int token, int node) {
        int count = 0;
        for (int nvlRank = 0; nvlRank < topology.numNvlRanks(); nvlRank++) {
            count += goes(token, topology.rankOf(node, nvlRank)) ? 1 : 0;
        }
        return count;
    }

    /** What is wrong with the routing, or null. */
    public Fault fault() {
        return fault;
    }

    /**
     * Reads {@code topkIdx}, or the mask of {@code layout}, or both and compares them. Either may
     * be null. No token goes where none can get.
     */
    public void scan(Tensor topkIdx, DispatchLayout layout, Masks without) {
        Arrays.fill(goes, false);
        Arrays.fill(tokensPerRank, 0);
        Arrays.fill(selectionsPerExpert, 0);
        fault = null;
        if (topkIdx != null) {
            scanTopk(topkIdx.segment(), (int) topkIdx.size(1));
        }
        if (layout != null && fault == null) {
            scanMask(layout.isTokenInRank(), topkIdx != null);
        }
        if (layout != null && fault == null) {
            compare(layout.numTokensPerRank(), tokensPerRank, FaultCode.LAYOUT_RANK_COUNT);
            if (topkIdx != null && layout.numTokensPerExpert() != null) {
                compare(
                        layout.numTokensPerExpert(),
                        selectionsPerExpert,
                        FaultCode.LAYOUT_EXPERT_COUNT);
            }
        }
        if (!without.isEmpty()) {
            leaveOut(without.rails());
        }
    }

    private void leaveOut(Rails rails) {
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            if (!rails.reaches(rank)) {
                for (int token = 0; token < numTokens; token++) {
                    set(token, rank, false);
                }
            }
        }
        for (int expert = 0; expert < selectionsPerExpert.length; expert++) {
            if (!rails.reaches(expert / (selectionsPerExpert.length / topology.numRanks()))) {
                selectionsPerExpert[expert] = 0;
            }
        }
    }

    private void scanTopk(MemorySegment topkIdx, int numTopk) {
        int numExperts = selectionsPerExpert.length;
        int expertsPerRank = numExperts / topology.numRanks();
        for (int token = 0; token < numTokens; token++) {
            for (int k = 0; k < numTopk; k++) {
                long expert =
                        topkIdx.get(
                                ValueLayout.JAVA_LONG_UNALIGNED, 8L * ((long) token * numTopk + k));
                if (expert < -1 || expert >= numExperts) {
                    setFault(FaultCode.EXPERT_OUT_OF_RANGE, token, k, expert);
                    return;
                }
                if (expert >= 0) {
                    set(token, (int) expert / expertsPerRank, true);
                    selectionsPerExpert[(int) expert]++;
                }
            }
        }
    }

    private void scanMask(Tensor isTokenInRank, boolean compare) {
        MemorySegment segment = isTokenInRank.segment();
        for (int token = 0; token < numTokens; token++) {
            for (int rank = 0; rank < topology.numRanks(); rank++) {
                long at = token * isTokenInRank.stride(0) + rank * isTokenInRank.stride(1);
                boolean told = segment.get(ValueLayout.JAVA_BYTE, at) != 0;
                if (compare && told != goes(token, rank)) {
                    setFault(FaultCode.LAYOUT_MASK, token, rank, told ? 1 : 0);
                    return;
                }
                set(token, rank, told);
            }
        }
    }

    private void compare(Tensor given, int[] counted, FaultCode contradiction) {
        MemorySegment segment = given.segment();
        for (int i = 0; i < counted.length && fault == null; i++) {
            int value = segment.get(ValueLayout.JAVA_INT_UNALIGNED, 4L * i);
            if (value != counted[i]) {
                setFault(contradiction, i, value, counted[i]);
            }
        }
    }

    private void setFault(FaultCode code, int token, int k, long seen) {
        fault = Fault.ofRouting(code, topology.rank(), token, k, seen);
    }
}
