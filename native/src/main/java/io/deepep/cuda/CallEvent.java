package io.deepep.cuda;

import io.deepep.error.NativeCallException;

/**
 * The end of an operation's latest run, or of the latest replay of the graph it went into.
 *
 * <p>Recording it costs the GPU about a microsecond. A run that {@linkplain #followStream follows
 * its stream} goes without: its end is the stream's, whenever somebody asks.
 */
public final class CallEvent implements DeviceEvent {
    private final CudaStream stream;
    private final CudaEvent finished;

    /** The same point for work that goes into the same graph. */
    private final CudaEvent captured;

    private boolean inGraph;
    private boolean nextFollows;

    /** Of the latest run. */
    private volatile boolean followsStream;

    /** Nothing has run on {@code stream} yet. */
    public CallEvent(CudaStream stream) {
        this.stream = stream;
        this.finished = CudaEvent.create(stream.context());
        this.captured = CudaEvent.create(stream.context());
    }

    /** Whether {@link #record} does nothing, from the next run on. */
    public void followStream(boolean on) {
        nextFollows = on;
    }

    /**
     * The same in a graph only: elsewhere a plan's next run waits for this one, not for all that
     * follows.
     */
    public void followStreamInGraph(boolean on) {
        followStream(on && stream.isCapturing());
    }

    /** The present end of the stream is the end of the run. */
    public void record() {
        record(stream.isCapturing());
    }

    /** The same where it is known whether the stream is being captured. */
    public void record(boolean capturing) {
        inGraph = capturing;
        followsStream = nextFollows;
        if (followsStream) {
            return;
        }
        if (inGraph) {
            stream.recordEveryReplay(finished, this);
            stream.record(captured);
        } else {
            stream.record(finished);
        }
    }

    /** What the host and other graphs wait for; of runs that record it. */
    public CudaEvent finished() {
        return finished;
    }

    /** Of a closed stream everything is done, also what the event was recorded for before. */
    @Override
    public CudaEvent cudaEvent() {
        synchronized (stream) { // another rank may ask while this one closes it
            if (stream.isClosed()) {
                return finished;
            }
            CudaEvent end = inGraph && stream.isCapturing() ? captured : finished;
            if (followsStream) {
                stream.record(end);
            }
            return end;
        }
    }

    /** Of a closed stream everything is done. */
    @Override
    public boolean isDone() {
        try {
            return followsStream ? stream.isIdle() : finished.isDone();
        } catch (NativeCallException e) {
            if (e.isFatal()) {
                return true; // as of any event: synchronize() says why
            }
            throw e;
        }
    }

    @Override
    public void synchronize() {
        if (!followsStream) {
            finished.synchronize();
        } else {
            stream.awaitEnd();
        }
    }
}
