package io.deepep.lowlatency.host;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.DispatchResults;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * A prepared dispatch: begin sends, complete receives. Up to two of its runs may be between the
 * halves; complete serves the older.
 */
final class HostDispatch implements Operation<LowLatencyDispatchResult> {
    private final HostLowLatencyKernels kernels;
    private final LowLatencyDispatchPlan plan;
    private final RowFormat rows;
    private final RunsInFlight runs;
    private final DispatchResults<HostBank> results;
    private final CallTimeouts timeouts;
    private long completed;

    HostDispatch(HostLowLatencyKernels kernels, LowLatencyDispatchPlan plan) {
        this.kernels = kernels;
        this.plan = plan;
        this.timeouts = kernels.peers.timeouts(plan);
        this.rows = LowLatencyLayout.rows(plan.format(), plan.hidden());
        this.runs = new RunsInFlight(kernels.dispatches);
        this.results = new DispatchResults<>(kernels.dispatches, plan, runs);
    }

    @Override
    public void begin() {
        kernels.peers.allow(timeouts);
        long dispatch = kernels.dispatches.open();
        HostBank bank = kernels.dispatches.of(dispatch);
        bank.plan = plan;
        bank.rowFormat = rows;
        bank.recvX = results.recvX(CallEpoch.parity(dispatch));
        bank.recvScales = results.recvScales(CallEpoch.parity(dispatch));
        bank.nextCombine = kernels.combines.next();
        kernels.sender.send(plan, dispatch);
        runs.add(dispatch);
        results.begin(dispatch);
    }

    @Override
    public void complete() {
        kernels.peers.allow(timeouts);
        completed = runs.take();
        kernels.receiver.receive(completed);
    }

    @Override
    public LowLatencyDispatchResult result(Event event, Runnable receiveHook) {
        return results.result(event, receiveHook);
    }

    @Override
    public void describe(RecordedFacts facts, boolean hasCompleted) {
        facts.rows(rows);
        facts.tokens(plan.x().size(0), RecordedFacts.UNKNOWN);
        if (hasCompleted) {
            HostBank bank = kernels.dispatches.of(completed);
            int[] experts = bank.count().segment().toArray(ValueLayout.JAVA_INT);
            facts.tokens(plan.x().size(0), Arrays.stream(experts).sum())
                    .peers(bank.sentRows, bank.receivedRows)
                    .directLinks(bank.sentRows)
                    .experts(experts);
        }
    }
}
