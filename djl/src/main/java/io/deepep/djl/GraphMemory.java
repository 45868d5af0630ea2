package io.deepep.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The memory of what libtorch computes during a capture, which is nobody else's as long as the
 * graph may be replayed. libtorch gives such memory to its own graphs only, so this is one, an
 * {@code at::cuda::CUDAGraph}; C has no functions for it, so it is called by the names of its
 * methods. These throw where something is wrong, which would end the process: callers make sure
 * that nothing is. What they capture is taken away before libtorch sees it.
 */
final class GraphMemory implements AutoCloseable {
    /** More than the object has in any version. */
    private static final long MOST_BYTES = 4096;

    private static final int THREAD_LOCAL = 1;

    /** Of libtorch's allocator: the name of today, and the one before. */
    private static final List<String> SETTINGS =
            List.of("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF");

    private static final StructLayout POOL = MemoryLayout.structLayout(JAVA_LONG, JAVA_LONG);

    private final Arena arena = Arena.ofShared();
    private final MemorySegment graph = arena.allocate(MOST_BYTES, 16);
    private boolean closed;

    GraphMemory() {
        if (Methods.NEW.isPresent()) {
            invoke(Methods.NEW.get(), graph);
        } else {
            invoke(Methods.NEW_TO_KEEP.orElseThrow(), graph, false);
        }
    }

    /** Whether the libtorch that DJL has loaded has such graphs, with this process's settings. */
    static boolean isThere() {
        return Availability.THERE;
    }

    private static final class Availability {
        static final boolean THERE =
                LibTorch.hasCuda() && Methods.areThere() && allocatesFor(System.getenv());

        private Availability() {}
    }

    /**
     * Whether libtorch's allocator serves captures of several threads. CUDA's own, which a variable
     * chooses, takes one at a time, and ends the process at the second; another variable has every
     * tensor allocated anew, which no capture may.
     */
    static boolean allocatesFor(Map<String, String> variables) {
        return !variables.containsKey("PYTORCH_NO_CUDA_MEMORY_CACHING")
                && SETTINGS.stream()
                        .map(name -> variables.getOrDefault(name, ""))
                        .noneMatch(settings -> settings.contains("cudaMallocAsync"));
    }

    /**
     * Begins a capture on libtorch's current stream, whose operations compute in this memory. The
     * stream is not a default stream, and can begin a capture.
     */
    void begin() {
        // All zeros: a pool of its own.
        invoke(Methods.BEGIN.orElseThrow(), graph, arena.allocate(POOL), THREAD_LOCAL);
    }

    /** Ends a capture on that stream, whoever began it; something was captured. */
    void end() {
        invoke(Methods.END.orElseThrow(), graph);
    }

    /** Gives the memory back; no replay is under way. Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            invoke(Methods.DELETE.orElseThrow(), graph);
            arena.close();
        }
    }

    /**
     * One thread at a time: each GPU's random generator has a set of its graphs, to which they are
     * added, and from which they are removed, without a lock.
     */
    private static synchronized void invoke(MethodHandle method, Object... arguments) {
        try {
            method.invokeWithArguments(arguments);
        } catch (Throwable t) {
            throw LibTorch.rethrow(t);
        }
    }

    private static final class Methods {
        private static final String CLASS = "_ZN2at4cuda9CUDAGraph";

        /** Until libtorch 2.7. */
        static final Optional<MethodHandle> NEW = find("C1Ev");

        /** Since libtorch 2.8. */
        static final Optional<MethodHandle> NEW_TO_KEEP = find("C1Eb", JAVA_BOOLEAN);

        static final Optional<MethodHandle> BEGIN =
                find("13capture_beginESt4pairIyyE21cudaStreamCaptureMode", POOL, JAVA_INT);
        static final Optional<MethodHandle> END = find("11capture_endEv");
        static final Optional<MethodHandle> DELETE = find("D1Ev");

        private Methods() {}

        static boolean areThere() {
            return (NEW.isPresent() || NEW_TO_KEEP.isPresent())
                    && BEGIN.isPresent()
                    && END.isPresent()
                    && DELETE.isPresent();
        }

        private static Optional<MethodHandle> find(String method, MemoryLayout... parameters) {
            FunctionDescriptor type =
                    FunctionDescriptor.ofVoid(parameters).insertArgumentLayouts(0, ADDRESS);
            return LibTorch.CudaPart.CUDA
                    .find(CLASS + method)
                    .map(function -> Linker.nativeLinker().downcallHandle(function, type));
        }
    }
}
