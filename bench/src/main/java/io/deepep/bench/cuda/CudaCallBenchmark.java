package io.deepep.bench.cuda;

import io.deepep.bench.jmh.CallBenchmark;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
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
    private CudaStream stream;
    private CudaEvent event;
    private StreamGate gate;

    /** Opens the GPU. */
    @Setup
    public void open() {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        stream = CudaStream.create(context);
        event = CudaEvent.create(context);
        gate = new StreamGate(context);
        stream.record(event);
    }

    /** Gives back what it took. */
    @TearDown
    public void close() {
        stream.synchronize();
        gate.close();
        event.close();
        stream.close();
    }

    /** A query: about the cheapest call there is. */
    @Benchmark
    public boolean queryEvent() {
        return event.isDone();
    }

    /** A mark in the stream. */
    @Benchmark
    public void recordEvent() {
        stream.record(event);
    }

    /** A launch of one block that does nothing. */
    @Benchmark
    public void launch() {
        gate.launch(stream);
    }

    /** The same, and until the host knows that it is over. */
    @Benchmark
    public void launchAndWait() {
        gate.launch(stream);
        stream.synchronize();
    }
}
