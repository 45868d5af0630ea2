package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CuCall;
import io.deepep.error.DeepEpException;
import java.util.concurrent.atomic.AtomicBoolean;

/** Work captured from a stream, to be replayed with one call. */
public final class CudaGraph implements AutoCloseable {
    private static final CuCall INSTANTIATE =
            CuCall.of("cuGraphInstantiateWithFlags", ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final CuCall LAUNCH = CuCall.of("cuGraphLaunch", JAVA_LONG, JAVA_LONG);
    private static final CuCall UPLOAD = CuCall.of("cuGraphUpload", JAVA_LONG, JAVA_LONG);
    private static final CuCall EXEC_DESTROY = CuCall.of("cuGraphExecDestroy", JAVA_LONG);
    private static final CuCall DESTROY = CuCall.of("cuGraphDestroy", JAVA_LONG);

    private final CudaContext context;
    private final long exec;
    private final AtomicBoolean closed = new AtomicBoolean();

    private CudaGraph(CudaContext context, long exec) {
        this.context = context;
        this.exec = exec;
    }

    /**
     * Captures what {@code work} enqueues on the stream, and on streams that it makes wait for it
     * and join it again. Nothing runs. The work must not synchronise; its kernels' arguments are
     * copied, the memory they point to is not.
     */
    public static CudaGraph capture(CudaStream stream, Runnable work) {
        long graph = captureTemplate(stream, work);
        try {
            return new CudaGraph(stream.context(), INSTANTIATE.ask(graph, 0));
        } finally {
            DESTROY.call(graph);
        }
    }

    private static long captureTemplate(CudaStream stream, Runnable work) {
        stream.beginCapture();
        try {
            work.run();
        } catch (RuntimeException | Error e) {
            abandon(stream, e);
            throw e;
        }
        return stream.endCapture();
    }

    /** Ends a capture that failed, so that the stream can be used again. */
    private static void abandon(CudaStream stream, Throwable cause) {
        try {
            long graph = stream.endCapture();
            if (graph != 0) {
                DESTROY.call(graph);
            }
        } catch (DeepEpException e) {
            cause.addSuppressed(e);
        }
    }

    /** Runs the captured work once, in the stream's order; allocates nothing. */
    public void launch(CudaStream stream) {
        context.makeCurrent();
        LAUNCH.call(exec(), stream.handle());
    }

    /**
     * Moves what a launch needs to the GPU in advance, so that the first launch costs no more than
     * later ones.
     */
    public void upload(CudaStream stream) {
        context.makeCurrent();
        UPLOAD.call(exec(), stream.handle());
    }

    private long exec() {
        if (closed.get()) {
            throw new IllegalStateException("the graph is closed");
        }
        return exec;
    }

    /** Destroys the graph; launches already enqueued finish. Idempotent. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            context.makeCurrent();
            EXEC_DESTROY.call(exec);
        }
    }
}
