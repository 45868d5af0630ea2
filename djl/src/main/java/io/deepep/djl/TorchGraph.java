package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.Graph;
import io.deepep.Stream;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;

/**
 * libtorch's operations on one GPU, and calls of a {@link io.deepep.Buffer} among them, captured to
 * be replayed with one call. Arrays that were made meanwhile and are still open have the results of
 * the latest replay, until the graph is closed.
 */
public final class TorchGraph implements Graph {
    private static final long LAST_DEFAULT_STREAM = 2;

    private final Stream stream;
    private final Graph graph;
    private final GraphMemory memory;
    private boolean closed;

    private TorchGraph(Stream stream, Graph graph, GraphMemory memory) {
        this.stream = stream;
        this.graph = graph;
        this.memory = memory;
    }

    /**
     * Whether libtorch's operations on a device can be captured: on GPUs, unless {@code
     * PYTORCH_ALLOC_CONF} chooses {@code cudaMallocAsync}, or {@code
     * PYTORCH_NO_CUDA_MEMORY_CACHING} is set.
     */
    public static boolean isAvailable(Device device) {
        return device.isGpu() && GraphMemory.isThere();
    }

    /**
     * Captures what {@code work} puts on this thread's current stream. Make the same operations
     * before, because new ones allocate and load. They must not wait for the GPU, as {@code
     * toFloatArray()} does, or copy to it, as {@code NDManager.create} does.
     *
     * @param device the GPU
     * @param work run once, by this thread; if it throws, nothing is captured
     * @throws IllegalStateException if the current stream is a default stream; see {@link
     *     TorchStreams#use}
     * @throws DeepEpException if the driver refuses something that the work did
     * @throws DeepEpUnavailableException if graphs are not {@linkplain #isAvailable available}
     */
    public static TorchGraph capture(Device device, Runnable work) {
        if (!isAvailable(device)) {
            throw new DeepEpUnavailableException(
                    "libtorch cannot capture graphs on " + device,
                    "run the work without a graph, or on a GPU, with libtorch's own caching allocator");
        }
        Stream stream = TorchStreams.current(device);
        if (Long.compareUnsigned(stream.cudaHandle(), LAST_DEFAULT_STREAM) <= 0) {
            throw new IllegalStateException(
                    "the current stream is a default stream, which cannot be captured; use another (TorchStreams.use)");
        }
        long guard = LibTorch.createCudaGuard(device.getDeviceId());
        try (NDManager scope = NDManager.newBaseManager(device, "PyTorch")) {
            return capture(stream, work, scope.zeros(new Shape(1)));
        } finally {
            LibTorch.deleteCudaGuard(guard);
        }
    }

    private static TorchGraph capture(Stream stream, Runnable work, NDArray zero) {
        // Whatever keeps this from being captured would end the process if libtorch met it.
        Graph.capture(stream, () -> zero.muli(zero)).close();
        GraphMemory memory = new GraphMemory();
        try {
            return new TorchGraph(stream, capture(stream, work, zero, memory), memory);
        } catch (Throwable failure) {
            memory.close();
            throw failure;
        }
    }

    private static Graph capture(Stream stream, Runnable work, NDArray zero, GraphMemory memory) {
        memory.begin();
        try {
            work.run();
        } catch (Throwable failure) {
            try {
                end(stream, zero, memory).close();
            } catch (DeepEpException spoiled) {
                failure.addSuppressed(spoiled);
            }
            throw failure;
        }
        return end(stream, zero, memory);
    }

    /** Takes the graph, and leaves libtorch a capture to end in which nothing can have failed. */
    private static Graph end(Stream stream, NDArray zero, GraphMemory memory) {
        try {
            return stream.endCapture();
        } finally {
            stream.beginCapture();
            zero.muli(zero);
            memory.end();
        }
    }

    @Override
    public void replay() {
        graph.replay();
    }

    /** Waits for the stream, destroys the graph, and gives its memory back. Idempotent. */
    @Override
    public void close() {
        if (closed) {
            return; // the stream may be gone
        }
        stream.synchronize();
        graph.close();
        memory.close();
        closed = true;
    }
}
