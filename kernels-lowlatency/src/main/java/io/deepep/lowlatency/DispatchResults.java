package io.deepep.lowlatency;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.Tensor;
import java.util.List;
import java.util.Objects;

/**
 * What a dispatch plan hands out: a result for each bank, the same object as long as nothing in it
 * changes.
 *
 * @param <B> a backend's banks
 */
public final class DispatchResults<B extends DispatchBank> {
    private final Banks<B> banks;
    private final LowLatencyDispatchPlan plan;
    private final RunsInFlight runs;
    private final List<Latest> byBank;
    private Latest latest;

    /** The plan's latest result in a bank. */
    private final class Latest {
        final int index;
        final Tensor recvX;
        final Tensor recvScales;
        BankHandle<B> handle;
        LowLatencyDispatchResult result;

        /** That the result receives by. */
        Runnable hook;

        Latest(int index) {
            this.index = index;
            recvX = banks.at(index).recvX(plan.format(), plan.hidden());
            recvScales = banks.at(index).recvScales(plan.format(), plan.hidden());
            renew();
        }

        void renew() {
            handle = new BankHandle<>(banks, index, plan);
            result = null;
        }
    }

    /**
     * None yet; allocates the memory of received rows.
     *
     * @param runs of the plan
     */
    public DispatchResults(Banks<B> banks, LowLatencyDispatchPlan plan, RunsInFlight runs) {
        this.banks = banks;
        this.plan = plan;
        this.runs = runs;
        this.byBank = List.of(new Latest(0), new Latest(1));
    }

    /** The received rows in a bank. */
    public Tensor recvX(int index) {
        return byBank.get(index).recvX;
    }

    /** Their scales; null for BF16. */
    public Tensor recvScales(int index) {
        return byBank.get(index).recvScales;
    }

    /** The plan has begun a dispatch, of which the next result is. */
    public void begin(long dispatch) {
        latest = byBank.get(CallEpoch.parity(dispatch));
        if (latest.handle.isExpected()) {
            latest.renew();
        }
        latest.handle.follow();
    }

    /** See {@link io.deepep.spi.Operation#result}. */
    public LowLatencyDispatchResult result(Event event, Runnable receiveHook) {
        Latest of = latest;
        if (of.result == null
                || !of.result.event().equals(event)
                || !Objects.equals(of.hook, receiveHook)) {
            of.hook = receiveHook;
            of.result =
                    new LowLatencyDispatchResult(
                            of.recvX,
                            of.recvScales,
                            banks.at(of.index).count(),
                            of.handle,
                            event,
                            receiveHook == null ? null : of.handle.guard(receiveHook, runs));
        }
        return of.result;
    }
}
