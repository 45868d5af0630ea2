package io.deepep.bench.lowlatency;

import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.CollectiveCall;

/** An operation of low-latency mode with reused plans, as it is measured. */
abstract class LowLatencyOperation implements CollectiveCall {
    private final String name;
    private final String dtype;
    private final int sms;

    LowLatencyOperation(String name, String dtype, int sms) {
        this.name = name;
        this.dtype = dtype;
        this.sms = sms;
    }

    /** As records call it. */
    final String name() {
        return name;
    }

    /** Of the rows that travel. */
    final String dtype() {
        return dtype;
    }

    /** Multiprocessors it runs on. */
    final int sms() {
        return sms;
    }

    /** What all ranks move. */
    abstract OperationBytes total(LowLatencyBytes bytes);

    /** What the busiest GPU sends to others, or receives from them if that is more. */
    abstract long busiestLinkBytes(LowLatencyBytes bytes);

    /** Bytes of a row as it travels between GPUs. */
    abstract long wireRowBytes(LowLatencyBytes bytes);

    /**
     * Holds what the latest call gave {@code rank} against the oracle, on that rank's thread. All
     * ranks' calls are over.
     *
     * @throws AssertionError if it is wrong
     */
    abstract void verify(int rank);
}
