package io.deepep.lowlatency.host;

import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;

/** Names one dispatch: the bank that holds its routing, and the epoch that must still be in it. */
final class HostLowLatencyHandle implements LowLatencyHandle {
    private final HostLowLatencyKernels owner;
    private final DispatchBank bank;
    private final boolean weighted;
    private long epoch;
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

    void follow() {
        epoch = bank.epoch;
        generation = owner.generation();
        numTokens = bank.numTokens;
        numTopk = bank.numTopk;
    }

    boolean belongsTo(HostLowLatencyKernels kernels) {
        return owner == kernels;
    }

    /** The bank, if it still holds this dispatch. */
    DispatchBank bank() {
        if (generation != owner.generation()) {
            throw new IllegalArgumentException(
                    "the handle is from before cleanLowLatencyBuffer; dispatch again");
        }
        if (bank.epoch != epoch) {
            throw new IllegalArgumentException(
                    "the handle is of dispatch "
                            + epoch
                            + " but its memory now holds dispatch "
                            + bank.epoch
                            + "; a low-latency handle is valid until the second next dispatch");
        }
        return bank;
    }

    /** The bank, if it holds this dispatch and has received it. */
    DispatchBank receivedBank() {
        DispatchBank held = bank();
        if (held.phase != DispatchBank.Phase.RECEIVED) {
            throw new IllegalArgumentException(
                    "dispatch " + epoch + " has not been received; run its receive hook first");
        }
        return held;
    }

    @Override
    public Tensor srcInfo() {
        return bank.srcInfoTensor;
    }

    @Override
    public Tensor layoutRange() {
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
