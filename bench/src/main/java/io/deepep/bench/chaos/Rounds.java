package io.deepep.bench.chaos;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
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
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.List;

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
    private final Buffer buffer;
    private final RankMemory memory;
    private final Disturbance disturbance;

    /** A rank that low-latency calls went on without, or -1. */
    private int lost = -1;

    Rounds(Trial trial, Buffer buffer, RankMemory memory, Disturbance disturbance) {
        this.trial = trial;
        this.rank = buffer.topology().rank();
        this.numRanks = buffer.topology().numRanks();
        this.buffer = buffer;
        this.memory = memory;
        this.disturbance = disturbance;
    }

    /** What a buffer for the rounds of {@code mode} must hold. */
    static void limits(Buffer.Builder builder, Mode mode, int numRanks) {
        switch (mode) {
            case NORMAL ->
                    builder.normal(
                            NormalLimits.of(MAX_TOKENS, HIDDEN, TOPK, EXPERTS_PER_RANK * numRanks));
            case LOW_LATENCY -> builder.lowLatency(lowLatencyLimits(numRanks));
        }
    }

    private static LowLatencyLimits lowLatencyLimits(int numRanks) {
        return new LowLatencyLimits(MAX_TOKENS, HIDDEN, TOPK, EXPERTS_PER_RANK * numRanks);
    }

    /** Makes all rounds; returns a rank that low-latency calls went on without, or -1. */
    int run() {
        for (int round = 0; round < Trial.ROUNDS; round++) {
            RoutingSpec spec =
                    RoutingSpec.of(numRanks, MAX_TOKENS, EXPERTS_PER_RANK * numRanks, TOPK)
                            .withVaryingTokens(true)
                            .withSeed(trial.seed() + round);
            switch (trial.mode()) {
                case NORMAL -> normal(round, NormalWorld.bf16(spec, HIDDEN));
                case LOW_LATENCY ->
                        lowLatency(round, LowLatencyWorld.of(spec, lowLatencyLimits(numRanks)));
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

    private void normal(int round, NormalWorld world) {
        NormalDispatchCheck check = world.check();
        DispatchPlan dispatch =
                DispatchPlan.builder(memory.upload(world.tokens().get(rank).x()), null)
                        .topk(
                                memory.upload(world.routing().topkIdxTensor(rank)),
                                memory.upload(world.routing().weightsTensor(rank)),
                                world.routing().numExperts())
                        .build();
        List<Tensor> outputs = world.outputs(check);
        Tensor own = memory.upload(outputs.get(rank));
        disturbance.at(Moment.DISPATCH, round);
        DispatchResult received = buffer.dispatch(dispatch);
        received.event().synchronize();
        disturbance.at(Moment.BETWEEN, round);
        try (Downloads downloads = new Downloads(memory)) {
            check.check(rank, received, downloads);
        }
        CombinePlan combine = CombinePlan.builder(own, received.handle()).build();
        disturbance.at(Moment.COMBINE, round);
        CombineResult combined = buffer.combine(combine);
        combined.event().synchronize();
        try (Downloads downloads = new Downloads(memory)) {
            NormalCombineOracle.of(check, buffer.topology().numNvlRanks())
                    .check(
                            rank,
                            CombineFormat.BF16,
                            outputs,
                            List.of(),
                            downloads.apply(combined.x()));
        }
    }

    private void lowLatency(int round, LowLatencyWorld world) {
        Tensor idx = memory.upload(world.routing().topkIdxTensor(rank));
        Tensor weights = memory.upload(world.routing().weightsTensor(rank));
        LowLatencyDispatchPlan dispatch =
                LowLatencyDispatchPlan.builder(memory.upload(world.tokens().get(rank).x()), idx)
                        .format(LowLatencyFormat.BF16)
                        .build();
        Tensor own = memory.upload(world.outputs().get(rank));
        disturbance.at(Moment.DISPATCH, round);
        LowLatencyDispatchResult received = buffer.lowLatencyDispatch(dispatch);
        received.event().synchronize();
        disturbance.at(Moment.BETWEEN, round);
        if (areAllHere()) {
            try (Downloads downloads = new Downloads(memory)) {
                world.check(LowLatencyFormat.BF16).checkDispatch(rank, received, downloads);
            }
        }
        LowLatencyCombinePlan combine =
                LowLatencyCombinePlan.builder(own, idx, weights, received.handle()).build();
        disturbance.at(Moment.COMBINE, round);
        LowLatencyCombineResult combined = buffer.lowLatencyCombine(combine);
        combined.event().synchronize();
        if (areAllHere()) {
            try (Downloads downloads = new Downloads(memory)) {
                world.checkCombine(rank, CombineFormat.BF16, false, downloads.apply(combined.x()));
            }
        }
    }
}
