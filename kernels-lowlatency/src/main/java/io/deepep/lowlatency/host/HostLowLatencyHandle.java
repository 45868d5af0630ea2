package io.deepep.lowlatency.host;

import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.spi.CallOrderException;

/**
 * Names one dispatch: the bank that holds its routing, and the dispatch that must still be in it.
 * Once that was combined, the object may stand for the plan's next dispatch in that bank.
 */
final class HostLowLatencyHandle implements LowLatencyHandle {
    private final HostLowLatencyKernels owner;
    private final DispatchBank bank;
    private final boolean weighted;
    private long dispatch;
    private boolean combined = true; // nobody holds it
    private int generation;
    private int numTokens;
    private int numTopk;

    HostLowLatencyHandle(HostLowLatencyKernels owner, DispatchBank bank, boolean weighted) {
        this.owner = owner;
        this.bank = bank;
        this.weighted = weighted;
    }

    /** Whether its dispatch was given weights. */
    boolean weighted() {
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
        dispatch = bank.call;
        generation = owner.generation();
        numTokens = bank.numTokens;
        numTopk = bank.numTopk;
    }

    boolean belongsTo(HostLowLatencyKernels kernels) {
        return owner == kernels;
    }

    /** Why the bank does not hold this dispatch any more, or null. */
    private String whyGone() {
        if (generation != owner.generation()) {
            return "the handle is from before cleanLowLatencyBuffer; dispatch again";
        }
        return bank.call == dispatch
                ? null
                : ("the handle is of dispatch %s but its memory now holds dispatch %s; a low-latency result is"
                                + " valid until the second next dispatch")
                        .formatted(dispatch, bank.call);
    }

    /**
     * A receive hook that refuses to run once the bank holds another dispatch. After a clean there
     * is nothing to receive, which the hook knows itself.
     */
    Runnable guard(Runnable receiveHook) {
        return () -> {
            if (generation == owner.generation()) {
                requireCurrent();
            }
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
    DispatchBank bank() {
        String gone = whyGone();
        if (gone != null) {
            throw new IllegalArgumentException(gone);
        }
        return bank;
    }

    /** The bank, to combine this dispatch, if it holds it and has received it. */
    DispatchBank combine() {
        DispatchBank held = receivedBank();
        combined = true;
        return held;
    }

    private DispatchBank receivedBank() {
        DispatchBank held = bank();
        if (held.phase != DispatchBank.Phase.RECEIVED) {
            throw new IllegalArgumentException(
                    "dispatch " + dispatch + " has not been received; run its receive hook first");
        }
        return held;
    }

    @Override
    public Tensor srcInfo() {
        requireCurrent();
        return bank.srcInfoTensor;
    }

    @Override
    public Tensor layoutRange() {
        requireCurrent();
        return bank.layoutRangeTensor;
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
