package io.deepep.lowlatency.host;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyRows;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Objects;

/**
 * A prepared dispatch: begin sends, complete receives. Up to two of its runs may be between the
 * halves; complete serves the older.
 */
final class HostDispatch implements Operation<LowLatencyDispatchResult> {
    private final HostLowLatencyKernels kernels;
    private final LowLatencyDispatchPlan plan;
    private final LowLatencyDispatchResult[] results = new LowLatencyDispatchResult[2];

    /** That the results receive by. */
    private final Runnable[] hooks = new Runnable[2];

    private final HostLowLatencyHandle[] handles = new HostLowLatencyHandle[2];
    private final RunsInFlight runs;
    private long completed;

    HostDispatch(HostLowLatencyKernels kernels, LowLatencyDispatchPlan plan) {
        this.kernels = kernels;
        this.plan = plan;
        this.runs = new RunsInFlight(kernels);
        for (int parity = 0; parity < 2; parity++) {
            handles[parity] = newHandle(parity);
        }
    }

    private HostLowLatencyHandle newHandle(int parity) {
        return new HostLowLatencyHandle(
                kernels, kernels.bankOf(parity), plan.topkWeights() != null);
    }

    @Override
    public void begin() {
        long epoch = kernels.sender().send(plan);
        runs.add(epoch);
        int parity = parity(epoch);
        if (handles[parity].isExpected()) {
            handles[parity] = newHandle(parity);
            results[parity] = null;
        }
        handles[parity].follow();
    }

    @Override
    public void complete() {
        completed = runs.take();
        kernels.receiver().receive(completed, plan.cumulativeStats(), plan.waitCostStats());
    }

    @Override
    public LowLatencyDispatchResult result(Event event, Runnable receiveHook) {
        int parity = parity(runs.latest());
        LowLatencyDispatchResult cached = results[parity];
        DispatchBank bank = kernels.bankOf(parity);
        if (cached != null
                && cached.event().equals(event)
                && Objects.equals(hooks[parity], receiveHook)
                && cached.recvX().equals(bank.recvX())) {
            return cached;
        }
        HostLowLatencyHandle handle = handles[parity];
        hooks[parity] = receiveHook;
        results[parity] =
                new LowLatencyDispatchResult(
                        bank.recvX(),
                        bank.recvScales(),
                        bank.countTensor,
                        handle,
                        event,
                        receiveHook == null ? null : handle.guard(receiveHook));
        return results[parity];
    }

    @Override
    public void describe(RecordedFacts facts, boolean hasCompleted) {
        int hidden = (int) plan.x().size(1);
        LowLatencyRows.dispatch(facts, plan.format(), hidden);
        facts.tokens(plan.x().size(0), RecordedFacts.UNKNOWN);
        if (hasCompleted) {
            DispatchBank bank = kernels.bank(completed);
            int[] experts = bank.countTensor.segment().toArray(ValueLayout.JAVA_INT);
            facts.tokens(plan.x().size(0), Arrays.stream(experts).sum())
                    .peers(bank.sentRows, bank.receivedRows)
                    .directLinks(bank.sentRows)
                    .experts(experts);
        }
    }

    private static int parity(long call) {
        return CallEpoch.parity(call);
    }
}
