package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.Set;

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
    private final List<Tensor> outputs;

    LowLatencyWorkload(Session session, Routing routing, int maxTokens) {
        this(session, routing, maxTokens, Set.of());
    }

    /** A workload in which the ranks {@code absent} are masked by the others. */
    LowLatencyWorkload(Session session, Routing routing, int maxTokens, Set<Integer> absent) {
        this.routing = routing;
        this.maxTokens = maxTokens;
        this.oracle = new LowLatencyOracle(routing, absent);
        int hidden = session.job().hidden();
        long seed = session.job().variations().seed();
        int numTopk = routing.numTopk();
        tokens =
                session.team()
                        .ask(rank -> Tokens.bf16(rank, routing.numTokens(rank), hidden, seed));
        topkIdx = session.team().ask(rank -> HostTensors.i64(routing.topkIdx(rank), numTopk));
        topkWeights = session.team().ask(rank -> HostTensors.f32(routing.weights(rank), numTopk));
        outputs = session.team().ask(rank -> outputs(hidden, seed + 77L * rank));
    }

    private Tensor outputs(int hidden, long seed) {
        long numExperts = routing.numLocalExperts();
        long slots = (long) routing.numRanks() * maxTokens;
        Tensor rows =
                Rows.expertOutputs(
                        Math.toIntExact(slots + EXPERT_SHIFT * numExperts), hidden, seed);
        return Tensor.strided(
                rows.segment(),
                rows.dtype(),
                new long[] {numExperts, slots, hidden},
                new long[] {EXPERT_SHIFT * hidden, hidden, 1});
    }

    Routing routing() {
        return routing;
    }

    LowLatencyOracle oracle() {
        return oracle;
    }

    Tensor x(int rank) {
        return tokens.get(rank).x();
    }

    Tensor topkIdx(int rank) {
        return topkIdx.get(rank);
    }

    Tensor topkWeights(int rank) {
        return topkWeights.get(rank);
    }

    /** What each rank's experts compute, BF16 [El, R*maxTokens, H]. */
    List<Tensor> outputs() {
        return outputs;
    }

    /** Copies the outputs of one rank's experts, where rows were received, into {@code target}. */
    void copyOutputs(int rank, Tensor target) {
        int[] counts = oracle.counts(rank);
        for (int expert = 0; expert < counts.length; expert++) {
            Rows.copy(
                    outputs.get(rank).select(0, expert), target.select(0, expert), counts[expert]);
        }
    }

    LowLatencyCheck check(LowLatencyFormat format) {
        return new LowLatencyCheck(oracle, tokens, format, maxTokens);
    }
}
