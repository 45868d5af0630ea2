package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;

/** The calls of the driver that operations are made of, on the first GPU, for benchmarks. */
public final class CudaCalls implements AutoCloseable {
    private final CudaStream stream;
    private final CudaEvent event;
    private final StreamGate gate;

    /** Opens the first GPU. */
    public CudaCalls() {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        stream = CudaStream.create(context);
        event = CudaEvent.create(context);
        gate = new StreamGate(context);
        stream.record(event);
    }

    /** Enqueues a kernel that does nothing. */
    public void launch() {
        gate.launch(stream);
    }

    /** Marks the end of the stream. */
    public void record() {
        stream.record(event);
    }

    /** Asks whether the mark has been passed. */
    public boolean query() {
        return event.isDone();
    }

    /** Waits for the stream. */
    public void synchronize() {
        stream.synchronize();
    }

    @Override
    public void close() {
        stream.synchronize();
        gate.close();
        event.close();
        stream.close();
    }
}
