package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Graph;
import io.deepep.cuda.driver.CuCall;
import java.util.concurrent.atomic.AtomicBoolean;

/** Work captured from a stream, to be replayed with one call. */
public final class CudaGraph implements Graph {
    private static final CuCall INSTANTIATE =
            CuCall.of("cuGraphInstantiateWithFlags", ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final CuCall LAUNCH = CuCall.of("cuGraphLaunch", JAVA_LONG, JAVA_LONG);
    private static final CuCall UPLOAD = CuCall.of("cuGraphUpload", JAVA_LONG, JAVA_LONG);
    private static final CuCall EXEC_DESTROY = CuCall.of("cuGraphExecDestroy", JAVA_LONG);
    private static final CuCall DESTROY = CuCall.of("cuGraphDestroy", JAVA_LONG);

    private final CudaStream stream;
    private final long exec;
    private final AtomicBoolean closed = new AtomicBoolean();

    private CudaGraph(CudaStream stream, long exec) {
        this.stream = stream;
        this.exec = exec;
    }

    /**
     * A graph that is ready: what a launch needs is on its way to the GPU, so that the first one
     * costs no more than later ones.
     *
     * @param template the driver's {@code CUgraph}, which is destroyed here
     */
    static CudaGraph of(CudaStream stream, long template) {
        try {
            CudaGraph graph = new CudaGraph(stream, INSTANTIATE.ask(template, 0));
            try {
                UPLOAD.call(graph.exec, stream.handle());
            } catch (RuntimeException failure) {
                graph.close();
                throw failure;
            }
            return graph;
        } finally {
            DESTROY.call(template);
        }
    }

    @Override
    public void replay() {
        launch(stream);
    }

    /** Runs the captured work once, in the order of any stream; allocates nothing. */
    public void launch(CudaStream in) {
        stream.context().makeCurrent();
        LAUNCH.call(exec(), in.handle());
    }

    private long exec() {
        if (closed.get()) {
            throw new IllegalStateException("the graph is closed");
        }
        return exec;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            stream.context().makeCurrent();
            EXEC_DESTROY.call(exec);
        }
    }
}
