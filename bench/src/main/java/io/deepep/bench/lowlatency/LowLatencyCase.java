package io.deepep.bench.lowlatency;

import static io.deepep.bench.lowlatency.LowLatencyFeature.ASYNC;
import static io.deepep.bench.lowlatency.LowLatencyFeature.HOOK;
import static io.deepep.bench.lowlatency.LowLatencyFeature.OUT;
import static io.deepep.bench.lowlatency.LowLatencyFeature.STATS;
import static io.deepep.bench.lowlatency.LowLatencyFeature.ZERO_COPY;

import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.Tensor;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.List;

/** One variant on one workload: dispatch, check, combine, check, on all ranks. */
record LowLatencyCase(Session session, LowLatencyWorkload workload, LowLatencyVariant variant)
        implements Case {
    @Override
    public String name() {
        return variant.name();
    }

    @Override
    public long run() {
        RankTeam team = session.team();
        List<LowLatencyDispatchPlan> plans = team.ask(this::plan);
        List<LowLatencyDispatchResult> received =
                team.ask(
                        rank -> {
                            LowLatencyDispatchResult result =
                                    session.buffer(rank)
                                            .lowLatencyDispatch(plans.get(rank), options());
                            finish(result.event(), result.receiveHook());
                            return result;
                        });
        long nanos = team.slowestNanos();
        team.run(rank -> workload.verify(rank, variant.format(), received.get(rank)));
        team.run(rank -> checkStats(rank, plans.get(rank)));
        List<LowLatencyCombinePlan> combines = team.ask(rank -> combine(rank, received.get(rank)));
        List<LowLatencyCombineResult> combined =
                team.ask(
                        rank -> {
                            LowLatencyCombineResult result =
                                    session.buffer(rank)
                                            .lowLatencyCombine(combines.get(rank), options());
                            finish(result.event(), result.receiveHook());
                            return result;
                        });
        nanos += team.slowestNanos();
        team.run(rank -> workload.verify(rank, variant.home(), combined.get(rank).x()));
        return nanos;
    }

    private LowLatencyDispatchPlan plan(int rank) {
        LowLatencyDispatchPlan.Builder builder =
                workload.dispatch(rank, variant.format(), variant.home().preReduced())
                        .receiveHook(variant.has(HOOK));
        if (variant.has(STATS)) {
            builder.cumulativeStats(
                            zeros(rank, DType.I32, workload.world().routing().numLocalExperts()))
                    .waitCostStats(zeros(rank, DType.I64, workload.world().routing().numRanks()));
        }
        return builder.build();
    }

    private Tensor zeros(int rank, DType dtype, long size) {
        return session.memory(rank).upload(HostTensors.allocate(dtype, size));
    }

    private LowLatencyCombinePlan combine(int rank, LowLatencyDispatchResult received) {
        Tensor input =
                variant.has(ZERO_COPY)
                        ? workload.outputsInBuffer(rank, received.handle())
                        : workload.outputs(rank);
        LowLatencyCombinePlan.Builder builder =
                workload.combine(rank, input, received.handle(), variant.home())
                        .receiveHook(variant.has(HOOK));
        if (variant.has(OUT)) {
            Tensor stale =
                    Rows.expertOutputs(
                            workload.world().routing().numTokens(rank),
                            session.job().hidden(),
                            rank);
            builder.out(session.memory(rank).upload(stale));
        }
        return builder.build();
    }

    private void checkStats(int rank, LowLatencyDispatchPlan plan) {
        if (!variant.has(STATS)) {
            return;
        }
        try (Downloads downloads = session.downloads(rank)) {
            Tensor cumulative = downloads.apply(plan.cumulativeStats());
            int[] counts = workload.world().oracle().counts(rank);
            for (int expert = 0; expert < counts.length; expert++) {
                long seen = cumulative.getLong(expert);
                if (seen != counts[expert]) {
                    throw new OracleMismatch(
                            "cumulativeStats[%s]: expected %s, saw %s"
                                    .formatted(expert, counts[expert], seen));
                }
            }
            Tensor waitCosts = downloads.apply(plan.waitCostStats());
            for (int src = 0; src < waitCosts.size(0); src++) {
                long waited = waitCosts.getLong(src);
                if (waited < 0) {
                    throw new OracleMismatch(
                            "waitCostStats[" + src + "]: saw " + waited + ", which is negative");
                }
            }
        }
    }

    private CallOptions options() {
        return variant.has(ASYNC) ? CallOptions.async() : CallOptions.sync();
    }

    private static void finish(Event event, Runnable receiveHook) {
        event.synchronize();
        if (receiveHook != null) {
            receiveHook.run();
        }
    }
}
