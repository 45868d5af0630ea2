package io.deepep.bench.jmh;

import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Ranks of the host backend that stay alive between invocations of one operation. */
@State(Scope.Benchmark)
public abstract class HostRanks {
    private MeasuredOperation operation;

    /** The operation, on buffers that are open and verified. */
    abstract MeasuredOperation operation();

    /** Opens the buffers and verifies. */
    @Setup
    public void open() {
        operation = operation();
    }

    void run() {
        operation.run();
    }

    /** Prints the share of the iteration. */
    @TearDown(Level.Iteration)
    public void report() {
        System.out.print("[" + operation.report() + "] ");
    }

    /** Closes the buffers. */
    @TearDown
    public void close() {
        operation.close();
    }
}
