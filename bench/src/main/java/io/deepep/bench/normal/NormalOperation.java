package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.run.CollectiveCall;

/** An operation of normal mode with reused plans, as it is measured. */
abstract class NormalOperation implements CollectiveCall {
    private final String name;
    private final DType dtype;
    private final int sms;

    NormalOperation(String name, DType dtype, int sms) {
        this.name = name;
        this.dtype = dtype;
        this.sms = sms;
    }

    /** As records call it. */
    final String name() {
        return name;
    }

    /** Of the rows that travel. */
    final DType dtype() {
        return dtype;
    }

    /** Multiprocessors it runs on. */
    final int sms() {
        return sms;
    }

    /** Whether rows are pushed to other ranks, rather than pulled from them. */
    abstract boolean pushes();

    /**
     * Holds what the latest call gave {@code rank} against the oracle, on that rank's thread. All
     * ranks' calls are over.
     *
     * @throws AssertionError if it is wrong
     */
    abstract void verify(int rank);
}
