package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.spi.CallOrderException;

/**
 * Names one dispatch: the bank that holds its routing, and the dispatch that must still be in it.
 * Once that was combined, the object may stand for the plan's next dispatch in that bank.
 */
final class CudaLowLatencyHandle implements LowLatencyHandle {
    private final CudaLowLatencyState owner;
    private final CudaBank bank;
    private final boolean weighted;
    private long dispatch;
    private boolean combined = true; // nobody holds it
    private int generation;
    private int numTokens;
    private int numTopk;

    CudaLowLatencyHandle(CudaLowLatencyState owner, CudaBank bank, boolean weighted) {
        this.owner = owner;
        this.bank = bank;
        this.weighted = weighted;
    }

    /** Whether its dispatch was given weights. */
    boolean weighted() {
        return weighted;
    }

    /** The handle as one of {@code state}'s. */
    static CudaLowLatencyHandle of(LowLatencyHandle handle, CudaLowLatencyState state) {
        if (handle instanceof CudaLowLatencyHandle cuda && cuda.owner == state) {
            return cuda;
        }
        throw new IllegalArgumentException(
                "the handle is of another buffer; combine with the handle that this buffer's dispatch returned");
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
        dispatch = bank.dispatch;
        generation = owner.generation();
        numTokens = bank.numTokens;
        numTopk = bank.numTopk;
    }

    /** Why the bank does not hold this dispatch any more, or null. */
    private String whyGone() {
        if (generation != owner.generation()) {
            return "the handle is from before cleanLowLatencyBuffer; dispatch again";
        }
        return bank.dispatch == dispatch
                ? null
                : ("the handle is of dispatch %s but its memory now holds dispatch %s; a low-latency result is"
                                + " valid until the second next dispatch")
                        .formatted(dispatch, bank.dispatch);
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
    CudaBank bank() {
        String gone = whyGone();
        if (gone != null) {
            throw new IllegalArgumentException(gone);
        }
        return bank;
    }

    /** Notes that this dispatch is combined, if the bank holds it and has received it. */
    void combine() {
        receivedBank();
        combined = true;
    }

    private CudaBank receivedBank() {
        CudaBank held = bank();
        if (held.phase != CudaBank.Phase.RECEIVED) {
            throw new IllegalArgumentException(
                    "dispatch "
                            + dispatch
                            + " has not been received, or failed; run its receive hook first");
        }
        return held;
    }

    @Override
    public Tensor srcInfo() {
        requireCurrent();
        return bank.srcInfo;
    }

    @Override
    public Tensor layoutRange() {
        requireCurrent();
        return bank.layoutRange;
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
