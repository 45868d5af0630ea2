package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;

/**
 * Names one dispatch: the bank that holds its routing, and the dispatch that must still be in it.
 */
final class CudaLowLatencyHandle implements LowLatencyHandle {
    private final CudaLowLatencyState owner;
    private final CudaBank bank;
    private final boolean weighted;
    private long dispatch;
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

    /** Names the bank's present dispatch from here on. */
    void follow() {
        dispatch = bank.dispatch;
        generation = owner.generation();
        numTokens = bank.numTokens;
        numTopk = bank.numTopk;
    }

    /** The bank, if it still holds this dispatch. */
    CudaBank bank() {
        if (generation != owner.generation()) {
            throw new IllegalArgumentException(
                    "the handle is from before cleanLowLatencyBuffer; dispatch again");
        }
        if (bank.dispatch != dispatch) {
            throw new IllegalArgumentException(
                    "the handle is of dispatch "
                            + dispatch
                            + " but its memory now holds dispatch "
                            + bank.dispatch
                            + "; a low-latency handle is valid until the second next dispatch");
        }
        return bank;
    }

    /** The bank, if it holds this dispatch and has received it. */
    CudaBank receivedBank() {
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
        return bank.srcInfo;
    }

    @Override
    public Tensor layoutRange() {
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
