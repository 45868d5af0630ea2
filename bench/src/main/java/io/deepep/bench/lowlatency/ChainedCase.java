package io.deepep.bench.lowlatency;

import io.deepep.Buffer;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Session;
import java.util.ArrayList;
import java.util.List;

/**
 * Two micro-batches at a time, as decoding overlaps them: both are sent before either is received,
 * then both are combined the same way; several times over without a pause between the ranks.
 */
record ChainedCase(Session session, List<LowLatencyWorkload> batches) implements Case {
    private static final int ROUNDS = 3;

    @Override
    public String name() {
        return "bf16             chained, two batches in flight";
    }

    @Override
    public long run() {
        long nanos = 0;
        for (int round = 0; round < ROUNDS; round++) {
            List<List<LowLatencyDispatchResult>> received = session.ask(this::dispatch);
            nanos += session.team().slowestNanos();
            session.run(
                    rank -> {
                        for (int batch = 0; batch < batches.size(); batch++) {
                            batches.get(batch)
                                    .verify(
                                            rank,
                                            LowLatencyFormat.BF16,
                                            received.get(rank).get(batch));
                        }
                    });
            List<List<Tensor>> combined = session.ask(rank -> combine(rank, received.get(rank)));
            nanos += session.team().slowestNanos();
            session.run(
                    rank -> {
                        for (int batch = 0; batch < batches.size(); batch++) {
                            batches.get(batch)
                                    .verify(rank, CombineRows.BF16, combined.get(rank).get(batch));
                        }
                    });
        }
        return nanos;
    }

    private List<LowLatencyDispatchResult> dispatch(int rank) {
        Buffer buffer = session.buffer(rank);
        List<LowLatencyDispatchResult> results = new ArrayList<>();
        for (LowLatencyWorkload batch : batches) {
            LowLatencyDispatchPlan.Builder plan =
                    batch.dispatch(rank, LowLatencyFormat.BF16, false);
            results.add(buffer.lowLatencyDispatch(plan.receiveHook(true).build()));
        }
        results.forEach(result -> result.receiveHook().run());
        return results;
    }

    private List<Tensor> combine(int rank, List<LowLatencyDispatchResult> received) {
        Buffer buffer = session.buffer(rank);
        List<LowLatencyCombineResult> results = new ArrayList<>();
        for (int batch = 0; batch < batches.size(); batch++) {
            LowLatencyCombinePlan.Builder plan =
                    batches.get(batch).combine(rank, received.get(batch).handle());
            results.add(buffer.lowLatencyCombine(plan.receiveHook(true).build()));
        }
        results.forEach(result -> result.receiveHook().run());
        return results.stream().map(LowLatencyCombineResult::x).toList();
    }
}
