package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.bench.measure.Accepted;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * One routing with the tokens of every rank, what their experts are said to compute, and what the
 * oracle makes of it. The oracle's own cast to FP8 is slow, so results are {@link Accepted}.
 */
final class LowLatencyWorkload {
    /**
     * Rows between the first rows of neighbouring experts: their outputs overlap in memory, but no
     * two experts see the same rows at the same places.
     */
    private static final long EXPERT_SHIFT = 17;

    private final LowLatencyWorld world;
    private final Session session;
    private final List<Tensor> x;
    private final List<Tensor> topkIdx;
    private final List<Tensor> topkWeights;
    private final List<Tensor> outputs;
    private final Accepted accepted = new Accepted();

    /** A workload in which the ranks {@code absent} are masked by the others. */
    LowLatencyWorkload(
            Session session, Routing routing, LowLatencyLimits limits, Set<Integer> absent) {
        this.session = session;
        int hidden = limits.hidden();
        long seed = session.job().variations().seed();
        int numRanks = routing.numRanks();
        int slots = numRanks * limits.maxTokens();
        List<Tensor> rows =
                ofRanks(numRanks, rank -> rows(routing, slots, hidden, seed + 77L * rank));
        world =
                new LowLatencyWorld(
                        routing,
                        new LowLatencyOracle(routing.without(absent)),
                        limits,
                        ofRanks(
                                numRanks,
                                rank -> Tokens.bf16(rank, routing.numTokens(rank), hidden, seed)),
                        rows.stream().map(each -> byExpert(each, routing, slots)).toList());
        x = session.ask(rank -> upload(rank, world.tokens().get(rank).x()));
        topkIdx = session.ask(rank -> upload(rank, routing.topkIdxTensor(rank)));
        topkWeights = session.ask(rank -> upload(rank, routing.weightsTensor(rank)));
        outputs = session.ask(rank -> byExpert(upload(rank, rows.get(rank)), routing, slots));
    }

    /** Ranks of other processes have the same as there: the oracle compares with theirs. */
    private static <T> List<T> ofRanks(int numRanks, IntFunction<T> each) {
        return IntStream.range(0, numRanks).parallel().mapToObj(each).toList();
    }

    private Tensor upload(int rank, Tensor host) {
        return session.memory(rank).upload(host);
    }

    private static Tensor rows(Routing routing, int slots, int hidden, long seed) {
        long rows = slots + EXPERT_SHIFT * routing.numLocalExperts();
        return Rows.expertOutputs(Math.toIntExact(rows), hidden, seed);
    }

    /** Overlapping views of the rows: [El, R*maxTokens, H]. */
    private static Tensor byExpert(Tensor rows, Routing routing, int slots) {
        long hidden = rows.size(1);
        long[] shape = {routing.numLocalExperts(), slots, hidden};
        long[] strides = {EXPERT_SHIFT * hidden, hidden, 1};
        return HostTensors.view(rows, shape, strides);
    }

    /** The exchange as the oracle sees it, all on the host. */
    LowLatencyWorld world() {
        return world;
    }

    /** What the experts of {@code rank} compute, on its device: BF16 [El, R*maxTokens, H]. */
    Tensor outputs(int rank) {
        return outputs.get(rank);
    }

    /** What a combine without a copy of its own takes: the outputs in the buffer's memory. */
    Tensor outputsInBuffer(int rank, LowLatencyHandle handle) {
        Tensor target = session.buffer(rank).getLowLatencyCombineBuffer(handle);
        int[] counts = world.oracle().counts(rank);
        for (int expert = 0; expert < counts.length; expert++) {
            session.memory(rank)
                    .copyRows(
                            outputs(rank).select(0, expert),
                            target.select(0, expert),
                            counts[expert]);
        }
        return target;
    }

    /** A dispatch of the rank's tokens; with weights, its combine may be pre-reduced. */
    LowLatencyDispatchPlan.Builder dispatch(int rank, LowLatencyFormat format, boolean weighted) {
        return LowLatencyDispatchPlan.builder(x.get(rank), topkIdx.get(rank))
                .format(format)
                .topkWeights(weighted ? topkWeights.get(rank) : null);
    }

    /** A combine of the outputs as they are. */
    LowLatencyCombinePlan.Builder combine(int rank, LowLatencyHandle handle) {
        return combine(rank, outputs(rank), handle, CombineRows.BF16);
    }

    /** A combine of {@code input}; pre-reduced, the dispatch was given weights. */
    LowLatencyCombinePlan.Builder combine(
            int rank, Tensor input, LowLatencyHandle handle, CombineRows home) {
        LowLatencyCombinePlan.Builder plan =
                home.preReduced()
                        ? LowLatencyCombinePlan.preReduced(input, topkIdx.get(rank), handle)
                        : LowLatencyCombinePlan.builder(
                                input, topkIdx.get(rank), topkWeights.get(rank), handle);
        return plan.format(home.format());
    }

    /** Holds what {@code rank} received against the oracle, on that rank's thread. */
    void verify(int rank, LowLatencyFormat format, LowLatencyDispatchResult result) {
        try (Downloads downloads = session.downloads(rank)) {
            Tensor received = downloads.apply(result.recvCount());
            int[] counts = new int[(int) received.size(0)];
            Arrays.setAll(counts, expert -> (int) received.getLong(expert));
            // Wrong counts would make the fingerprint read undefined rows, so they come first.
            long bits =
                    Arrays.equals(counts, world.oracle().counts(rank))
                            ? fingerprint(result, counts, downloads)
                            : -1;
            accepted.accept(
                    rank,
                    format,
                    bits,
                    () -> world.check(format).checkDispatch(rank, result, downloads));
        }
    }

    /** Holds what {@code rank} got back against the oracle, on that rank's thread. */
    void verify(int rank, CombineRows home, Tensor result) {
        try (Downloads downloads = session.downloads(rank)) {
            Tensor actual = downloads.apply(result);
            accepted.accept(
                    rank,
                    home,
                    31 * Rows.fingerprint(actual, actual.size(0)) + actual.toString().hashCode(),
                    () -> world.checkCombine(rank, home.format(), home.preReduced(), actual));
        }
    }

    /** All that the oracle looks at: shapes, received rows, scales, sources and ranges. */
    private static long fingerprint(
            LowLatencyDispatchResult result, int[] counts, Downloads downloads) {
        long hash = result.recvX().toString().hashCode();
        hash = 31 * hash + String.valueOf(result.recvScales()).hashCode();
        Tensor srcInfo = downloads.apply(result.handle().srcInfo());
        Tensor scales = result.recvScales() == null ? null : downloads.apply(result.recvScales());
        for (int expert = 0; expert < counts.length; expert++) {
            // The rows that arrived are few among those that there is room for.
            Tensor rows = result.recvX().select(0, expert).slice(0, 0, counts[expert]);
            hash = 31 * hash + Rows.fingerprint(downloads.apply(rows), counts[expert]);
            for (int row = 0; row < counts[expert]; row++) {
                hash = 31 * hash + srcInfo.getLong(expert, row);
                for (int group = 0; scales != null && group < scales.size(2); group++) {
                    hash = 31 * hash + scales.getLong(expert, row, group);
                }
            }
        }
        Tensor range = downloads.apply(result.handle().layoutRange());
        for (int expert = 0; expert < range.size(0); expert++) {
            for (int src = 0; src < range.size(1); src++) {
                long packed = range.getLong(expert, src);
                hash = 31 * hash + (LowLatencyHandle.rangeCount(packed) == 0 ? 0 : packed);
            }
        }
        return hash;
    }
}
