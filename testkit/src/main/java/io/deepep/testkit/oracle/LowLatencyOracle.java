package io.deepep.testkit.oracle;

import io.deepep.Tensor;
import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.Stream;

/** What each rank must receive in a low-latency dispatch of a global routing. */
public final class LowLatencyOracle {
    private final Routing routing;
    private final List<List<List<SourceRow>>> rows = new ArrayList<>();

    /** The oracle for one dispatch: of a routing without the selections that masks take away. */
    public LowLatencyOracle(Routing routing) {
        this.routing = routing;
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            rows.add(
                    Stream.<List<SourceRow>>generate(ArrayList::new)
                            .limit(routing.numLocalExperts())
                            .toList());
        }
        for (int src = 0; src < routing.numRanks(); src++) {
            for (int token = 0; token < routing.numTokens(src); token++) {
                for (int k = 0; k < routing.numTopk(); k++) {
                    add(new SourceRow(src, token, k));
                }
            }
        }
    }

    private void add(SourceRow row) {
        long expert = routing.expert(row.srcRank(), row.token(), row.selection());
        if (expert >= 0) {
            int owner = routing.ownerOf(expert);
            rows(owner, routing.localExpert(expert, owner)).add(row);
        }
    }

    /** The routing this is the oracle of. */
    public Routing routing() {
        return routing;
    }

    /** The rows of one expert, packed, ordered by source rank, token, selection. */
    public List<SourceRow> rows(int rank, int localExpert) {
        return rows.get(rank).get(localExpert);
    }

    /** recvCount: the rows of each local expert. */
    public int[] counts(int rank) {
        return rows.get(rank).stream().mapToInt(List::size).toArray();
    }

    /** How many rows of an expert come from {@code src}. */
    public int countFrom(int rank, int localExpert, int src) {
        return (int) rows(rank, localExpert).stream().filter(r -> r.srcRank() == src).count();
    }

    /** The first row of an expert that comes from {@code src}, or would if there were one. */
    public int beginOf(int rank, int localExpert, int src) {
        return (int) rows(rank, localExpert).stream().filter(r -> r.srcRank() < src).count();
    }

    /** Takes row {@code row} of {@code rows}, BF16 [N,H]. */
    interface RowVisitor {
        void add(Tensor rows, long row, double weight);
    }

    /**
     * Visits the rows of a token's selections that come from {@code ranks}, in their order.
     *
     * @param outputs for each rank the rows of its experts, [El, rows, H]
     */
    void forRows(int src, int token, IntPredicate ranks, List<Tensor> outputs, RowVisitor visitor) {
        for (int k = 0; k < routing.numTopk(); k++) {
            int row = rowOf(src, token, k);
            if (row < 0) {
                continue;
            }
            long expert = routing.expert(src, token, k);
            int rank = routing.ownerOf(expert);
            if (ranks.test(rank)) {
                Tensor output = outputs.get(rank).select(0, routing.localExpert(expert, rank));
                visitor.add(output, row, routing.weight(src, token, k));
            }
        }
    }

    /** The row of a selection at the expert it selects, or -1 if it is masked or lost. */
    public int rowOf(int src, int token, int selection) {
        long expert = routing.expert(src, token, selection);
        if (expert < 0) {
            return -1;
        }
        int rank = routing.ownerOf(expert);
        return rows(rank, routing.localExpert(expert, rank))
                .indexOf(new SourceRow(src, token, selection));
    }
}
