package io.deepep.cuda;

import static io.deepep.cuda.driver.CuStructs.LAUNCH_ATTRIBUTE;
import static io.deepep.cuda.driver.CuStructs.LAUNCH_CONFIG;
import static io.deepep.cuda.driver.CuStructs.offset;
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
    private static final int PROGRAMMATIC_STREAM_SERIALIZATION = 6;

    private static final long GRID = offset(LAUNCH_CONFIG, "gridDim");
    private static final long BLOCK = offset(LAUNCH_CONFIG, "blockDim");
    private static final long SHARED_BYTES = offset(LAUNCH_CONFIG, "sharedMemBytes");
    private static final long STREAM = offset(LAUNCH_CONFIG, "hStream");
    private static final long ATTRIBUTES = offset(LAUNCH_CONFIG, "attrs");
    private static final long NUM_ATTRIBUTES = offset(LAUNCH_CONFIG, "numAttrs");
    private static final long ATTRIBUTE_ID = offset(LAUNCH_ATTRIBUTE, "id");
    private static final long ATTRIBUTE_VALUE = offset(LAUNCH_ATTRIBUTE, "value");

    private final MemorySegment config;
    private final MemorySegment attribute;

    /**
     * A grid of {@code numBlocks} blocks of {@code numThreads} threads, in memory that lives as
     * long as {@code arena}.
     */
    public LaunchConfig(Arena arena, int numBlocks, int numThreads) {
        config = arena.allocate(LAUNCH_CONFIG);
        attribute = arena.allocate(LAUNCH_ATTRIBUTE);
        config.set(ADDRESS, ATTRIBUTES, attribute);
        setDim(GRID, numBlocks, 1, 1);
        setDim(BLOCK, numThreads, 1, 1);
    }

    /** Number of blocks. */
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

    /**
     * Programmatic dependent launch: blocks may begin as soon as those of the kernel before on the
     * stream have ended, while its end is still being processed. The kernel itself waits for that,
     * by {@code await_previous_launch} of {@code memory.cuh}, before it touches memory. Behind
     * anything but a kernel it makes no difference.
     */
    public LaunchConfig overlapsPrevious() {
        attribute.set(JAVA_INT, ATTRIBUTE_ID, PROGRAMMATIC_STREAM_SERIALIZATION);
        attribute.set(JAVA_INT, ATTRIBUTE_VALUE, 1);
        config.set(JAVA_INT, NUM_ATTRIBUTES, 1);
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

    private static int positive(int dim) {
        if (dim <= 0) {
            throw new IllegalArgumentException("launch dimension " + dim + " must be at least 1");
        }
        return dim;
    }
}
