package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireBadIndices;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Nodes of more ranks than a few, and groups of more than a word has bits. */
@BackendSuite
public record LowLatencyLargeConformance(TestBackend backend) {
    /** Two experts of each rank, so that tokens can name two of one. */
    private static LowLatencyShape shape(int nodes, int ranksPerNode) {
        return new LowLatencyShape(nodes, ranksPerNode, 3, 128, 6, 2 * nodes * ranksPerNode);
    }

    /** Shapes that the backend has groups and room for, and that this version runs on it. */
    static Stream<LowLatencyShape> large(TestBackend backend) {
        return fitting(
                backend,
                shape(1, 9),
                shape(1, 16),
                shape(1, 40),
                shape(2, 9),
                shape(5, 7),
                shape(8, 8));
    }

    private static Stream<LowLatencyShape> fitting(TestBackend backend, LowLatencyShape... shapes) {
        return Stream.of(shapes).filter(shape -> Ranks.fit(backend, shape.topology(), true));
    }

    static Stream<LowLatencyShape> largest(TestBackend backend) {
        return fitting(
                backend, shape(1, 72), shape(8, 9), shape(2, 64), shape(4, 64), shape(32, 8));
    }

    static Stream<LowLatencyShape> smallest(TestBackend backend) {
        return fitting(backend, shape(1, 9), shape(1, 40), shape(5, 7));
    }

    @Cases(from = "large")
    public void roundTrips(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        rank.roundTrip();
        rank.combine(rank.dispatch(LowLatencyFormat.BF16).handle(), CombineFormat.FP8);
        rank.combinePreReduced(rank.dispatchWeighted(LowLatencyFormat.FP8).handle());
    }

    @Tag("slow")
    @Cases(from = "largest")
    @Timeout(300)
    public void roundTripsOfTheLargest(LowLatencyShape shape, RankContext context) {
        roundTrips(shape, context);
    }

    /** The last rank is masked by hand, then back. */
    @Cases(from = "smallest")
    public void maskedRank(LowLatencyShape shape, RankContext context) {
        LowLatencyMaskConformance.leaveOutTheLast(shape, context, LowLatencyRank::roundTrip);
    }

    /** Two ranks name experts that do not exist: all ranks learn of the first. */
    @Cases(from = "smallest")
    public void expertOutOfRange(LowLatencyShape shape, RankContext context) {
        int culprit = shape.topology().numRanks() - 2;
        LowLatencyRank rank = shape.rank(context);
        Tensor idx = context.download(rank.topkIdx());
        if (context.rank() >= culprit) {
            idx.setLong(shape.experts() + context.rank(), 2, 1);
        }
        requireBadIndices(rank, context.upload(idx), culprit, "=" + (shape.experts() + culprit));
    }
}
