package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * One routing with the tokens of every rank, what their experts are said to compute, and what the
 * oracle makes of it.
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
                        new LowLatencyOracle(routing, absent),
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

    /** A way to bring a rank's results to the host. */
    Downloads downloads(int rank) {
        return session.downloads(rank);
    }

    /** The rank's tokens on its device, as are the other tensors here. */
    Tensor x(int rank) {
        return x.get(rank);
    }

    Tensor topkIdx(int rank) {
        return topkIdx.get(rank);
    }

    Tensor topkWeights(int rank) {
        return topkWeights.get(rank);
    }

    /** What the experts of {@code rank} compute, BF16 [El, R*maxTokens, H]. */
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
        return LowLatencyDispatchPlan.builder(x(rank), topkIdx(rank))
                .format(format)
                .topkWeights(weighted ? topkWeights(rank) : null);
    }

    /** A combine of the outputs as they are. */
    LowLatencyCombinePlan.Builder combine(int rank, LowLatencyHandle handle) {
        return combine(rank, outputs(rank), handle, CombineRows.BF16);
    }

    /** A combine of {@code input}; pre-reduced, the dispatch was given {@link #topkWeights}. */
    LowLatencyCombinePlan.Builder combine(
            int rank, Tensor input, LowLatencyHandle handle, CombineRows home) {
        LowLatencyCombinePlan.Builder plan =
                home.preReduced()
                        ? LowLatencyCombinePlan.preReduced(input, topkIdx(rank), handle)
                        : LowLatencyCombinePlan.builder(
                                input, topkIdx(rank), topkWeights(rank), handle);
        return plan.format(home.format());
    }
}
