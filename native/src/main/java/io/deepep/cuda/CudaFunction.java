package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CuCall;
import java.lang.foreign.MemorySegment;

/** A kernel of a loaded module; usable as long as the module is. */
public final class CudaFunction {
    private static final int STATIC_SHARED_BYTES = 1;
    private static final int MAX_DYNAMIC_SHARED_BYTES = 8;

    private static final CuCall LAUNCH =
            CuCall.of("cuLaunchKernelEx", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
    private static final CuCall GET_ATTRIBUTE =
            CuCall.of("cuFuncGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG);
    private static final CuCall SET_ATTRIBUTE =
            CuCall.of("cuFuncSetAttribute", JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final CuCall MAX_ACTIVE_BLOCKS =
            CuCall.of(
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_INT,
                    JAVA_LONG);

    private final CudaContext context;
    private final String name;
    private final long handle;

    CudaFunction(CudaContext context, String name, long handle) {
        this.context = context;
        this.name = name;
        this.handle = handle;
    }

    /**
     * Enqueues the kernel; allocates nothing. {@code config} and {@code params} may be changed once
     * this returns.
     */
    public void launch(LaunchConfig config, KernelParams params, CudaStream stream) {
        context.makeCurrent();
        LAUNCH.call(
                config.forStream(stream.handle()), handle, params.pointers(), MemorySegment.NULL);
    }

    /** Lets launches ask for up to so much dynamic shared memory, beyond the default of 48 KiB. */
    public void setMaxDynamicSharedBytes(int numBytes) {
        int limit = context.cudaDevice().maxSharedBytesPerBlock() - staticSharedBytes();
        if (numBytes < 0 || numBytes > limit) {
            throw new IllegalArgumentException(
                    "numBytes=%d is not in [0, %d], the dynamic shared memory a block of %s can have on %s"
                            .formatted(numBytes, limit, name, context));
        }
        context.makeCurrent();
        SET_ATTRIBUTE.call(handle, MAX_DYNAMIC_SHARED_BYTES, numBytes);
    }

    /**
     * How many blocks of that shape can be resident on a multiprocessor at once if it runs nothing
     * else: kernels whose blocks wait for one another must not have more.
     */
    public int maxBlocksPerSm(int numThreads, int dynamicSharedBytes) {
        context.makeCurrent();
        return (int) MAX_ACTIVE_BLOCKS.ask(handle, numThreads, dynamicSharedBytes);
    }

    /** Shared memory the kernel declares itself. */
    private int staticSharedBytes() {
        context.makeCurrent();
        return (int) GET_ATTRIBUTE.ask(STATIC_SHARED_BYTES, handle);
    }
}
