package io.deepep.cuda;

/** The end of an operation's latest run, or of the latest replay of the graph it went into. */
public final class CallEvent implements DeviceEvent {
    private final CudaStream stream;
    private final CudaEvent finished;

    /** The same point for work that goes into the same graph. */
    private final CudaEvent captured;

    private boolean inGraph;

    /** Nothing has run on {@code stream} yet. */
    public CallEvent(CudaStream stream) {
        this.stream = stream;
        this.finished = CudaEvent.create(stream.context());
        this.captured = CudaEvent.create(stream.context());
    }

    /** The present end of the stream is the end of the run. */
    public void record() {
        inGraph = stream.isCapturing();
        if (inGraph) {
            stream.recordEveryReplay(finished);
            stream.record(captured);
        } else {
            stream.record(finished);
        }
    }

    /** What the host and other graphs wait for. */
    public CudaEvent finished() {
        return finished;
    }

    @Override
    public CudaEvent cudaEvent() {
        return inGraph && stream.isCapturing() ? captured : finished;
    }

    @Override
    public boolean isDone() {
        return finished.isDone();
    }

    @Override
    public void synchronize() {
        finished.synchronize();
    }
}
