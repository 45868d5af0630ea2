package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A kernel's launch shape, kept off-heap and used again: made once, perhaps changed between
 * launches, which allocates nothing. One thread at a time.
 */
public final class LaunchConfig {
    private static final int MAX_ATTRIBUTES = 4;
    private static final int COOPERATIVE = 2;
    private static final int CLUSTER_DIMENSION = 4;
    private static final int PROGRAMMATIC_STREAM_SERIALIZATION = 6;
    private static final int PRIORITY = 8;

    private static final long GRID = CuStructs.offset(CuStructs.LAUNCH_CONFIG, "gridDim");
    private static final long BLOCK = CuStructs.offset(CuStructs.LAUNCH_CONFIG, "blockDim");
    private static final long SHARED_BYTES =
            CuStructs.offset(CuStructs.LAUNCH_CONFIG, "sharedMemBytes");
    private static final long STREAM = CuStructs.offset(CuStructs.LAUNCH_CONFIG, "hStream");
    private static final long ATTRIBUTES = CuStructs.offset(CuStructs.LAUNCH_CONFIG, "attrs");
    private static final long NUM_ATTRIBUTES =
            CuStructs.offset(CuStructs.LAUNCH_CONFIG, "numAttrs");
    private static final long ATTRIBUTE_ID = CuStructs.offset(CuStructs.LAUNCH_ATTRIBUTE, "id");
    private static final long ATTRIBUTE_VALUE =
            CuStructs.offset(CuStructs.LAUNCH_ATTRIBUTE, "value");

    private final MemorySegment config;
    private final MemorySegment attributes;

    /**
     * A grid of {@code numBlocks} blocks of {@code numThreads} threads, in memory that lives as
     * long as {@code arena}.
     */
    public LaunchConfig(Arena arena, int numBlocks, int numThreads) {
        config = arena.allocate(CuStructs.LAUNCH_CONFIG);
        attributes = arena.allocate(CuStructs.LAUNCH_ATTRIBUTE, MAX_ATTRIBUTES);
        config.set(ADDRESS, ATTRIBUTES, attributes);
        setDim(GRID, numBlocks, 1, 1);
        setDim(BLOCK, numThreads, 1, 1);
    }

    /** Number of blocks. */
    public LaunchConfig grid(int x, int y, int z) {
        return setDim(GRID, x, y, z);
    }

    /** Number of blocks in one dimension. */
    public LaunchConfig grid(int numBlocks) {
        return setDim(GRID, numBlocks, 1, 1);
    }

    /** Threads of a block. */
    public LaunchConfig block(int x, int y, int z) {
        return setDim(BLOCK, x, y, z);
    }

    /**
     * Dynamic shared memory of a block; beyond 48 KiB see {@link
     * CudaFunction#setMaxDynamicSharedBytes}.
     */
    public LaunchConfig sharedBytes(int numBytes) {
        config.set(JAVA_INT, SHARED_BYTES, numBytes);
        return this;
    }

    /** The launch fails unless all blocks can be resident at once. */
    public LaunchConfig cooperative() {
        attributes.set(JAVA_INT, attribute(COOPERATIVE), 1);
        return this;
    }

    /** Blocks of a cluster; the grid is a multiple of it. */
    public LaunchConfig cluster(int x, int y, int z) {
        long value = attribute(CLUSTER_DIMENSION);
        attributes.set(JAVA_INT, value, positive(x));
        attributes.set(JAVA_INT, value + 4, positive(y));
        attributes.set(JAVA_INT, value + 8, positive(z));
        return this;
    }

    /**
     * Programmatic dependent launch: blocks may begin as soon as those of the kernel before on the
     * stream have ended, while its end is still being processed. The kernel itself waits for that,
     * by {@code await_previous_launch} of {@code memory.cuh}, before it touches memory. Behind
     * anything but a kernel it makes no difference.
     */
    public LaunchConfig overlapsPrevious() {
        attributes.set(JAVA_INT, attribute(PROGRAMMATIC_STREAM_SERIALIZATION), 1);
        return this;
    }

    /** Priority of this launch, lower is sooner; kept when the launch is captured into a graph. */
    public LaunchConfig priority(int priority) {
        attributes.set(JAVA_INT, attribute(PRIORITY), priority);
        return this;
    }

    /** The struct, for the stream the next launch goes to. */
    MemorySegment forStream(long stream) {
        config.set(JAVA_LONG, STREAM, stream);
        return config;
    }

    private LaunchConfig setDim(long offset, int x, int y, int z) {
        config.set(JAVA_INT, offset, positive(x));
        config.set(JAVA_INT, offset + 4, positive(y));
        config.set(JAVA_INT, offset + 8, positive(z));
        return this;
    }

    /** Where the attribute's value goes: its own place if it was set before, else a new one. */
    private long attribute(int id) {
        int numAttributes = config.get(JAVA_INT, NUM_ATTRIBUTES);
        long size = CuStructs.LAUNCH_ATTRIBUTE.byteSize();
        for (int i = 0; i < numAttributes; i++) {
            if (attributes.get(JAVA_INT, i * size + ATTRIBUTE_ID) == id) {
                return i * size + ATTRIBUTE_VALUE;
            }
        }
        attributes.set(JAVA_INT, numAttributes * size + ATTRIBUTE_ID, id);
        config.set(JAVA_INT, NUM_ATTRIBUTES, numAttributes + 1);
        return numAttributes * size + ATTRIBUTE_VALUE;
    }

    private static int positive(int dim) {
        if (dim <= 0) {
            throw new IllegalArgumentException("launch dimension " + dim + " is not positive");
        }
        return dim;
    }
}
