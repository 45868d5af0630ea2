package io.deepep.testkit.oracle;

import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What each rank must receive in a normal-mode dispatch of a global routing. */
public final class NormalOracle {
    private final Routing routing;
    private final List<List<SourceRow>> rows = new ArrayList<>();

    /** The selections of each expert, of which low-latency mode makes a row each. */
    private final LowLatencyOracle selections;

    /** The oracle for one dispatch. */
    public NormalOracle(Routing routing) {
        this.routing = routing;
        this.selections = new LowLatencyOracle(routing);
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            rows.add(receivedBy(rank));
        }
    }

    private List<SourceRow> receivedBy(int rank) {
        List<SourceRow> received = new ArrayList<>();
        for (int src = 0; src < routing.numRanks(); src++) {
            for (int token = 0; token < routing.numTokens(src); token++) {
                if (routing.goesTo(src, token, rank)) {
                    received.add(new SourceRow(src, token, -1));
                }
            }
        }
        return List.copyOf(received);
    }

    /** The routing this is the oracle of. */
    public Routing routing() {
        return routing;
    }

    /** The rows that {@code rank} receives, ordered by source rank and token: N of them. */
    public List<SourceRow> rows(int rank) {
        return rows.get(rank);
    }

    /** For a received row, the local expert of each selection, or -1: one row of recvTopkIdx. */
    public long[] localExperts(int rank, SourceRow row) {
        long[] local = new long[routing.numTopk()];
        for (int k = 0; k < local.length; k++) {
            local[k] = routing.localExpert(routing.expert(row.srcRank(), row.token(), k), rank);
        }
        return local;
    }

    /** For a received row, the weights of the selections that are local, else 0. */
    public float[] localWeights(int rank, SourceRow row) {
        long[] local = localExperts(rank, row);
        float[] weights = new float[local.length];
        for (int k = 0; k < local.length; k++) {
            weights[k] = local[k] < 0 ? 0 : routing.weight(row.srcRank(), row.token(), k);
        }
        return weights;
    }

    /** Selections of each local expert, rounded up to a multiple of {@code alignment}. */
    public int[] counts(int rank, int alignment) {
        int[] counts = new int[routing.numLocalExperts()];
        for (int expert = 0; expert < counts.length; expert++) {
            int exact = selections.rows(rank, expert).size();
            counts[expert] = (exact + alignment - 1) / alignment * alignment;
        }
        return counts;
    }

    /** First row of each local expert in the expanded layout, then the end of the last. */
    public int[] expertOffsets(int rank, int alignment) {
        int[] counts = counts(rank, alignment);
        int[] offsets = new int[counts.length + 1];
        for (int expert = 0; expert < counts.length; expert++) {
            offsets[expert + 1] = offsets[expert] + counts[expert];
        }
        return offsets;
    }

    /** The rows of the expanded layout, padding included: M of them. */
    public List<SourceRow> expandedRows(int rank, int alignment) {
        int[] counts = counts(rank, alignment);
        List<SourceRow> expanded = new ArrayList<>();
        for (int expert = 0; expert < counts.length; expert++) {
            List<SourceRow> own = selections.rows(rank, expert);
            expanded.addAll(own);
            for (int i = own.size(); i < counts[expert]; i++) {
                expanded.add(SourceRow.PADDING);
            }
        }
        return expanded;
    }

    /** How many of {@code src}'s tokens go to each node of {@code numNvlRanks} ranks. */
    public int[] tokensPerNode(int src, int numNvlRanks) {
        int[] counts = new int[routing.numRanks() / numNvlRanks];
        for (int token = 0; token < routing.numTokens(src); token++) {
            boolean[] reached = new boolean[counts.length];
            for (int rank = 0; rank < routing.numRanks(); rank++) {
                reached[rank / numNvlRanks] |= routing.goesTo(src, token, rank);
            }
            for (int node = 0; node < counts.length; node++) {
                counts[node] += reached[node] ? 1 : 0;
            }
        }
        return counts;
    }

    /** How often {@code src}'s tokens select each expert. */
    public int[] selectionsPerExpert(int src) {
        int[] counts = new int[routing.numExperts()];
        for (long[] row : routing.topkIdx(src)) {
            Arrays.stream(row).filter(e -> e >= 0).forEach(e -> counts[(int) e]++);
        }
        return counts;
    }
}
