package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.oracle.PreReducedCheck;
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

    private final Routing routing;
    private final int maxTokens;
    private final LowLatencyOracle oracle;
    private final List<Tokens> tokens;
    private final List<Tensor> topkIdx;
    private final List<Tensor> topkWeights;
    private final Session session;
    private final List<Tensor> x;
    private final List<Tensor> outputs;
    private final List<Tensor> hostOutputs;

    LowLatencyWorkload(Session session, Routing routing, int maxTokens) {
        this(session, routing, maxTokens, Set.of());
    }

    /** A workload in which the ranks {@code absent} are masked by the others. */
    LowLatencyWorkload(Session session, Routing routing, int maxTokens, Set<Integer> absent) {
        this.session = session;
        this.routing = routing;
        this.maxTokens = maxTokens;
        this.oracle = new LowLatencyOracle(routing, absent);
        int hidden = session.job().hidden();
        long seed = session.job().variations().seed();
        int numTopk = routing.numTopk();
        tokens = ofAllRanks(rank -> Tokens.bf16(rank, routing.numTokens(rank), hidden, seed));
        x = session.ask(rank -> upload(rank, tokens.get(rank).x()));
        topkIdx =
                session.ask(rank -> upload(rank, HostTensors.i64(routing.topkIdx(rank), numTopk)));
        topkWeights =
                session.ask(rank -> upload(rank, HostTensors.f32(routing.weights(rank), numTopk)));
        List<Tensor> computed = ofAllRanks(rank -> outputs(hidden, seed + 77L * rank));
        hostOutputs = computed.stream().map(this::byExpert).toList();
        outputs = session.ask(rank -> byExpert(upload(rank, computed.get(rank))));
    }

    /** Ranks of other processes have the same as there: the oracle compares with theirs. */
    private <T> List<T> ofAllRanks(IntFunction<T> each) {
        return IntStream.range(0, routing.numRanks()).parallel().mapToObj(each).toList();
    }

    private Tensor upload(int rank, Tensor host) {
        return session.memory(rank).upload(host);
    }

    private Tensor outputs(int hidden, long seed) {
        long slots = (long) routing.numRanks() * maxTokens;
        long rows = slots + EXPERT_SHIFT * routing.numLocalExperts();
        return Rows.expertOutputs(Math.toIntExact(rows), hidden, seed);
    }

    /** Overlapping views of the rows: [El, R*maxTokens, H]. */
    private Tensor byExpert(Tensor rows) {
        long hidden = rows.size(1);
        long[] shape = {routing.numLocalExperts(), (long) routing.numRanks() * maxTokens, hidden};
        long[] strides = {EXPERT_SHIFT * hidden, hidden, 1};
        return rows.device().isHost()
                ? Tensor.strided(rows.segment(), rows.dtype(), shape, strides)
                : Tensor.onDevice(
                        rows.device(),
                        rows.address(),
                        rows.capacityBytes(),
                        rows.dtype(),
                        shape,
                        strides,
                        rows.owner());
    }

    Routing routing() {
        return routing;
    }

    LowLatencyOracle oracle() {
        return oracle;
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

    /** The same of all ranks, on the host for the oracle. */
    List<Tensor> hostOutputs() {
        return hostOutputs;
    }

    /** Copies the outputs of one rank's experts, where rows were received, into {@code target}. */
    void copyOutputs(int rank, Tensor target) {
        int[] counts = oracle.counts(rank);
        for (int expert = 0; expert < counts.length; expert++) {
            session.memory(rank)
                    .copyRows(
                            outputs(rank).select(0, expert),
                            target.select(0, expert),
                            counts[expert]);
        }
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

    PreReducedCheck preReducedCheck() {
        return new PreReducedCheck(oracle, hostOutputs);
    }

    LowLatencyCheck check(LowLatencyFormat format) {
        return new LowLatencyCheck(oracle, tokens, format, maxTokens);
    }
}
