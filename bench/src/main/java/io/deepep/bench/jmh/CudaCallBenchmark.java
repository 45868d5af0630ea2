package io.deepep.bench.jmh;

import io.deepep.bench.cuda.CudaCalls;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * What calls of the CUDA driver cost from Java, on the first GPU; {@code deepep jmh} leaves it out
 * where there is none. Launches follow each other without a wait, so a sample is what host or GPU
 * takes per launch, whichever is slower.
 */
@State(Scope.Benchmark)
public class CudaCallBenchmark extends CallBenchmark {
    private CudaCalls calls;

    /** Opens the GPU. */
    @Setup
    public void open() {
        calls = new CudaCalls();
    }

    /** Gives back what it took. */
    @TearDown
    public void close() {
        calls.close();
    }

    /** A query: about the cheapest call there is. */
    @Benchmark
    public boolean queryEvent() {
        return calls.query();
    }

    /** A mark in the stream. */
    @Benchmark
    public void recordEvent() {
        calls.record();
    }

    /** A launch of one block that does nothing. */
    @Benchmark
    public void launch() {
        calls.launch();
    }

    /** The same, and until the host knows that it is over. */
    @Benchmark
    public void launchAndWait() {
        calls.launch();
        calls.synchronize();
    }
}
