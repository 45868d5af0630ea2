package io.deepep.normal.host;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.spi.Operation;

/** One rank of a {@link RankGroup}, whose calls run to their end. */
record Rank(int rank, HostNormalKernels kernels) {
    DispatchResult dispatch(DispatchPlan plan) {
        return run(kernels.prepareDispatch(plan));
    }

    DispatchResult dispatch(DispatchPlan.Builder plan) {
        return dispatch(plan.build());
    }

    CombineResult combine(CombinePlan plan) {
        return run(kernels.prepareCombine(plan));
    }

    CombineResult combine(CombinePlan.Builder plan) {
        return combine(plan.build());
    }

    static <R> R run(Operation<R> operation) {
        operation.begin();
        operation.complete();
        return operation.result(Event.completed(), null);
    }
}
