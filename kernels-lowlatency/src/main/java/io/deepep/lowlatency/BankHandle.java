package io.deepep.lowlatency;

import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.error.CallOrderException;

/**
 * Names one dispatch: the bank that holds its routing, and the dispatch that must still be in it.
 * Once that was combined, the object may stand for the plan's next dispatch in that bank.
 *
 * @param <B> a backend's banks
 */
public final class BankHandle<B extends DispatchBank> implements LowLatencyHandle {
    private final Banks<B> owner;
    private final B bank;
    private final boolean weighted;
    private final int numTokens;
    private final int numTopk;
    private long dispatch;
    private boolean combined = true; // nobody holds it
    private int generation;

    /**
     * Stands for nothing until it {@linkplain #follow follows} a dispatch.
     *
     * @param index of its bank
     * @param plan whose dispatches it names
     */
    BankHandle(Banks<B> owner, int index, LowLatencyDispatchPlan plan) {
        this.owner = owner;
        this.bank = owner.at(index);
        this.weighted = plan.topkWeights() != null;
        this.numTokens = (int) plan.x().size(0);
        this.numTopk = (int) plan.topkIdx().size(1);
    }

    /** The handle as one of {@code banks}. */
    @SuppressWarnings("unchecked") // whose owner has banks of this type
    public static <B extends DispatchBank> BankHandle<B> of(
            LowLatencyHandle handle, Banks<B> banks) {
        if (handle instanceof BankHandle<?> mine && mine.owner == banks) {
            return (BankHandle<B>) mine;
        }
        throw new IllegalArgumentException(
                "the handle belongs to another buffer; combine with the handle of this buffer's dispatch");
    }

    /** Whether its dispatch was given weights. */
    public boolean weighted() {
        return weighted;
    }

    /**
     * Whether it names a dispatch that was not combined: whoever holds it has to learn that another
     * one has taken its place, so it must not stand for that.
     */
    boolean isExpected() {
        return !combined;
    }

    /** Names the bank's present dispatch from here on. */
    void follow() {
        combined = false;
        dispatch = bank.call();
        generation = owner.generation();
    }

    @Override
    public String toString() {
        return "LowLatencyHandle[dispatch=%s, numTokens=%s, numTopk=%s]"
                .formatted(dispatch, numTokens, numTopk);
    }

    /** A number that no other dispatch of the rank has had. */
    public long id() {
        return owner.id(dispatch);
    }

    /** Why the bank does not hold this dispatch any more, or null. */
    private String whyGone() {
        if (generation != owner.generation()) {
            return "dispatch %s was discarded by cleanLowLatencyBuffer, rejoin or admit; dispatch again"
                    .formatted(dispatch);
        }
        return bank.call() == dispatch
                ? null
                : ("the handle is of dispatch %s but its memory now holds dispatch %s; a low-latency result is"
                                + " valid until the buffer's second dispatch after its own")
                        .formatted(dispatch, bank.call());
    }

    /**
     * A receive hook that refuses to run once the dispatch is gone, or if another one of the plan
     * is to be received next.
     *
     * @param receiveHook receives the oldest of {@code runs}
     */
    Runnable guard(Runnable receiveHook, RunsInFlight runs) {
        return () -> {
            requireCurrent();
            runs.requireNext(dispatch);
            receiveHook.run();
        };
    }

    private void requireCurrent() {
        String gone = whyGone();
        if (gone != null) {
            throw new CallOrderException(gone);
        }
    }

    /** The bank, if it still holds this dispatch. */
    public B bank() {
        String gone = whyGone();
        if (gone != null) {
            throw new IllegalArgumentException(gone);
        }
        return bank;
    }

    /** The bank, if it still holds this dispatch and has received it. */
    public B received() {
        B held = bank();
        if (!held.isReceived()) {
            throw new IllegalArgumentException(
                    "dispatch %s has not been received, or failed; run its receive hook first"
                            .formatted(dispatch));
        }
        return held;
    }

    /** Notes a combine that has begun: from here on the object may stand for another dispatch. */
    public void setCombined() {
        combined = true;
    }

    @Override
    public Tensor srcInfo() {
        requireCurrent();
        return bank.srcInfo();
    }

    @Override
    public Tensor layoutRange() {
        requireCurrent();
        return bank.layoutRange();
    }

    @Override
    public int numTokens() {
        return numTokens;
    }

    @Override
    public int numTopk() {
        return numTopk;
    }
}
