package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.List;

/** One rank is masked and stays away; the others go on without it, and take it back afterwards. */
record MaskedRankCase(Session session, LowLatencyWorkload workload, int absent) implements Case {
    @Override
    public String name() {
        return "bf16             one rank masked and away";
    }

    @Override
    public long run() {
        session.run(
                rank -> {
                    if (rank != absent) {
                        session.buffer(rank).updateMask(absent, true);
                        requireMask(rank, 1);
                    }
                });
        List<LowLatencyDispatchResult> received =
                session.ask(rank -> rank == absent ? null : dispatch(rank));
        long nanos = session.team().slowestNanos();
        session.run(
                rank -> {
                    if (rank != absent) {
                        workload.verify(rank, LowLatencyFormat.BF16, received.get(rank));
                    }
                });
        List<Tensor> combined =
                session.ask(rank -> rank == absent ? null : combine(rank, received.get(rank)));
        nanos += session.team().slowestNanos();
        session.run(
                rank -> {
                    if (rank != absent) {
                        workload.verify(rank, CombineRows.BF16, combined.get(rank));
                    }
                    session.buffer(rank).rejoin();
                    requireMask(rank, 0);
                });
        return nanos;
    }

    private LowLatencyDispatchResult dispatch(int rank) {
        LowLatencyDispatchPlan.Builder plan = workload.dispatch(rank, LowLatencyFormat.BF16, false);
        return session.buffer(rank).lowLatencyDispatch(plan.build());
    }

    private Tensor combine(int rank, LowLatencyDispatchResult received) {
        LowLatencyCombinePlan.Builder plan = workload.combine(rank, received.handle());
        return session.buffer(rank).lowLatencyCombine(plan.build()).x();
    }

    private void requireMask(int rank, int expected) {
        int seen = session.buffer(rank).queryMask()[absent];
        if (seen != expected) {
            throw new OracleMismatch(
                    "mask of rank %s at rank %s: expected %s, saw %s"
                            .formatted(absent, rank, expected, seen));
        }
    }
}
