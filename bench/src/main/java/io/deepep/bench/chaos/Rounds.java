package io.deepep.bench.chaos;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.RankMemory;
import io.deepep.planner.Mode;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What one rank does in a run: dispatches and combines with inputs of their own in each round,
 * which every rank can draw for all ranks, so that each checks all that it gets.
 */
final class Rounds {
    private static final int MAX_TOKENS = 12;
    private static final int HIDDEN = 256;
    private static final int TOPK = 4;
    private static final int EXPERTS_PER_RANK = 4;

    private final Trial trial;
    private final int rank;
    private final int numRanks;
    private final int ranksPerNode;
    private final Buffer buffer;
    private final RankMemory memory;
    private final Disturbance disturbance;

    /** A rank that low-latency calls went on without, or -1. */
    private int lost = -1;

    Rounds(
            Trial trial,
            int ranksPerNode,
            Buffer buffer,
            RankMemory memory,
            Disturbance disturbance) {
        this.trial = trial;
        this.rank = buffer.topology().rank();
        this.numRanks = buffer.topology().numRanks();
        this.ranksPerNode = ranksPerNode;
        this.buffer = buffer;
        this.memory = memory;
        this.disturbance = disturbance;
    }

    /** What a buffer for the rounds of {@code mode} must hold. */
    static void limits(Buffer.Builder builder, Mode mode, int numRanks) {
        int experts = EXPERTS_PER_RANK * numRanks;
        switch (mode) {
            case NORMAL -> builder.normal(NormalLimits.of(MAX_TOKENS, HIDDEN, TOPK, experts));
            case LOW_LATENCY ->
                    builder.lowLatency(new LowLatencyLimits(MAX_TOKENS, HIDDEN, experts, TOPK));
        }
    }

    /** Makes all rounds; returns a rank that low-latency calls went on without, or -1. */
    int run() {
        for (int round = 0; round < Trial.ROUNDS; round++) {
            long seed = trial.seed() + round;
            Routing routing =
                    RoutingSpec.of(numRanks, MAX_TOKENS, EXPERTS_PER_RANK * numRanks, TOPK)
                            .withVaryingTokens(true)
                            .withSeed(seed)
                            .generate();
            List<Tokens> tokens =
                    IntStream.range(0, numRanks)
                            .mapToObj(r -> Tokens.bf16(r, routing.numTokens(r), HIDDEN, seed))
                            .toList();
            switch (trial.mode()) {
                case NORMAL -> normal(round, seed, routing, tokens);
                case LOW_LATENCY -> lowLatency(round, seed, routing, tokens);
            }
        }
        return lost;
    }

    /** Whether results are whole. Without a rank, calls go on for those that have not noticed. */
    private boolean areAllHere() {
        int[] masked = buffer.queryMask();
        for (int peer = 0; peer < numRanks; peer++) {
            lost = masked[peer] != 0 ? peer : lost;
        }
        return lost < 0;
    }

    private void normal(int round, long seed, Routing routing, List<Tokens> tokens) {
        NormalOracle oracle = new NormalOracle(routing);
        DispatchPlan dispatch =
                DispatchPlan.builder(memory.upload(tokens.get(rank).x()), null)
                        .topk(topkIdx(routing), topkWeights(routing), routing.numExperts())
                        .build();
        List<Tensor> outputs =
                IntStream.range(0, numRanks)
                        .mapToObj(
                                r -> Tokens.expertOutputs(oracle.rows(r).size(), HIDDEN, seed + r))
                        .toList();
        Tensor own = memory.upload(outputs.get(rank));
        disturbance.at(Moment.DISPATCH, round);
        DispatchResult received = buffer.dispatch(dispatch);
        received.event().synchronize();
        disturbance.at(Moment.BETWEEN, round);
        try (Downloads downloads = new Downloads(memory)) {
            NormalDispatchCheck.of(oracle, tokens).check(rank, received, downloads);
        }
        CombinePlan combine = CombinePlan.builder(own, received.handle()).build();
        disturbance.at(Moment.COMBINE, round);
        CombineResult combined = buffer.combine(combine);
        combined.event().synchronize();
        try (Downloads downloads = new Downloads(memory)) {
            NormalCombineOracle.of(oracle, ranksPerNode)
                    .check(rank, outputs, List.of(), downloads.apply(combined.x()));
        }
    }

    private void lowLatency(int round, long seed, Routing routing, List<Tokens> tokens) {
        LowLatencyCheck check =
                new LowLatencyCheck(
                        new LowLatencyOracle(routing), tokens, LowLatencyFormat.BF16, MAX_TOKENS);
        Tensor idx = topkIdx(routing);
        LowLatencyDispatchPlan dispatch =
                LowLatencyDispatchPlan.builder(memory.upload(tokens.get(rank).x()), idx)
                        .format(LowLatencyFormat.BF16)
                        .build();
        List<Tensor> outputs =
                IntStream.range(0, numRanks).mapToObj(r -> byExpert(seed + r)).toList();
        Tensor own = memory.upload(outputs.get(rank));
        disturbance.at(Moment.DISPATCH, round);
        LowLatencyDispatchResult received = buffer.lowLatencyDispatch(dispatch);
        received.event().synchronize();
        disturbance.at(Moment.BETWEEN, round);
        if (areAllHere()) {
            try (Downloads downloads = new Downloads(memory)) {
                check.checkDispatch(rank, received, downloads);
            }
        }
        LowLatencyCombinePlan combine =
                LowLatencyCombinePlan.builder(own, idx, topkWeights(routing), received.handle())
                        .build();
        disturbance.at(Moment.COMBINE, round);
        LowLatencyCombineResult combined = buffer.lowLatencyCombine(combine);
        combined.event().synchronize();
        if (areAllHere()) {
            try (Downloads downloads = new Downloads(memory)) {
                check.checkCombine(rank, outputs, 0, 0, downloads.apply(combined.x()));
            }
        }
    }

    private Tensor topkIdx(Routing routing) {
        return memory.upload(HostTensors.i64(routing.topkIdx(rank), TOPK));
    }

    private Tensor topkWeights(Routing routing) {
        return memory.upload(HostTensors.f32(routing.weights(rank), TOPK));
    }

    /** What a rank's experts compute: [El, R*maxTokens, H]. */
    private Tensor byExpert(long seed) {
        int slots = numRanks * MAX_TOKENS;
        Tensor rows = Tokens.expertOutputs(EXPERTS_PER_RANK * slots, HIDDEN, seed);
        return Tensor.of(rows.segment(), DType.BF16, EXPERTS_PER_RANK, slots, HIDDEN);
    }
}
