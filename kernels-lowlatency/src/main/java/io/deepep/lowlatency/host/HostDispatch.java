package io.deepep.lowlatency.host;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

    private final List<BankHandle<DispatchBank>> handles = new ArrayList<>();
    private final RunsInFlight runs;
    private final CallTimeouts timeouts;
    private long completed;

    HostDispatch(HostLowLatencyKernels kernels, LowLatencyDispatchPlan plan) {
        this.kernels = kernels;
        this.plan = plan;
        this.timeouts = kernels.peers.timeouts(plan);
        this.runs = new RunsInFlight(kernels.banks, kernels.banks::isSent);
        for (int parity = 0; parity < Banks.COUNT; parity++) {
            handles.add(newHandle(parity));
        }
    }

    private BankHandle<DispatchBank> newHandle(int parity) {
        return new BankHandle<>(kernels.banks, parity, plan.topkWeights() != null);
    }

    @Override
    public void begin() {
        kernels.peers.allow(timeouts);
        long epoch = kernels.sender.send(plan);
        runs.add(epoch);
        int parity = CallEpoch.parity(epoch);
        if (handles.get(parity).isExpected()) {
            handles.set(parity, newHandle(parity));
            results[parity] = null;
        }
        handles.get(parity).follow();
    }

    @Override
    public void complete() {
        kernels.peers.allow(timeouts);
        completed = runs.take();
        kernels.receiver.receive(completed, plan.cumulativeStats(), plan.waitCostStats());
    }

    @Override
    public LowLatencyDispatchResult result(Event event, Runnable receiveHook) {
        int parity = CallEpoch.parity(runs.latest());
        LowLatencyDispatchResult cached = results[parity];
        if (cached != null
                && cached.event().equals(event)
                && Objects.equals(hooks[parity], receiveHook)) {
            return cached;
        }
        BankHandle<DispatchBank> handle = handles.get(parity);
        DispatchBank bank = kernels.banks.at(parity);
        hooks[parity] = receiveHook;
        results[parity] =
                new LowLatencyDispatchResult(
                        bank.recvX(),
                        bank.recvScales(),
                        bank.countTensor,
                        handle,
                        event,
                        receiveHook == null ? null : handle.guard(receiveHook, runs));
        return results[parity];
    }

    @Override
    public void describe(RecordedFacts facts, boolean hasCompleted) {
        int hidden = (int) plan.x().size(1);
        facts.rows(LowLatencyLayout.rows(plan.format(), hidden));
        facts.tokens(plan.x().size(0), RecordedFacts.UNKNOWN);
        if (hasCompleted) {
            DispatchBank bank = kernels.banks.of(completed);
            int[] experts = bank.countTensor.segment().toArray(ValueLayout.JAVA_INT);
            facts.tokens(plan.x().size(0), Arrays.stream(experts).sum())
                    .peers(bank.sentRows, bank.receivedRows)
                    .directLinks(bank.sentRows)
                    .experts(experts);
        }
    }
}
