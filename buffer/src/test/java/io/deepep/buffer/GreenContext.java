package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Stream;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A part of a GPU's multiprocessors, as an engine makes it, and a stream in it. */
final class GreenContext implements AutoCloseable {
    /** Of {@code CUdevResource}. */
    private static final long RESOURCE_BYTES = 144;

    private static final int SMS = 1;
    private static final int DEFAULT_STREAM = 1;
    private static final int NON_BLOCKING = 1;

    private static final CuCall GET_RESOURCE =
            CuCall.of("cuDeviceGetDevResource", JAVA_INT, ADDRESS, JAVA_INT);
    private static final CuCall SPLIT =
            CuCall.of(
                    "cuDevSmResourceSplitByCount",
                    ADDRESS,
                    ADDRESS,
                    ADDRESS,
                    ADDRESS,
                    JAVA_INT,
                    JAVA_INT);
    private static final CuCall DESCRIBE =
            CuCall.of("cuDevResourceGenerateDesc", ADDRESS, ADDRESS, JAVA_INT);
    private static final CuCall CREATE =
            CuCall.of("cuGreenCtxCreate", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final CuCall DESTROY = CuCall.of("cuGreenCtxDestroy", JAVA_LONG);
    private static final CuCall TO_CONTEXT = CuCall.of("cuCtxFromGreenCtx", ADDRESS, JAVA_LONG);
    private static final CuCall SET_CURRENT = CuCall.of("cuCtxSetCurrent", JAVA_LONG);
    private static final CuCall CREATE_STREAM =
            CuCall.of("cuGreenCtxStreamCreate", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final CuCall DESTROY_STREAM = CuCall.of("cuStreamDestroy_v2", JAVA_LONG);

    private final CudaContext context;
    private final long handle;
    private final long stream;

    /**
     * @param index of several parts that have nothing in common
     * @param numSms of each part; a multiple of 8
     */
    GreenContext(CudaContext context, int index, int numSms) {
        this.context = context;
        context.makeCurrent();
        int device = context.cudaDevice().ordinal();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment all = arena.allocate(RESOURCE_BYTES, Long.BYTES);
            MemorySegment parts = arena.allocate((index + 1) * RESOURCE_BYTES, Long.BYTES);
            GET_RESOURCE.invoke(device, all, SMS);
            MemorySegment number = arena.allocateFrom(JAVA_INT, index + 1);
            SPLIT.invoke(parts, number, all, MemorySegment.NULL, 0, numSms);
            MemorySegment part = parts.asSlice(index * RESOURCE_BYTES);
            handle = CREATE.ask(DESCRIBE.ask(part, 1), device, DEFAULT_STREAM);
        }
        stream = CREATE_STREAM.ask(handle, NON_BLOCKING, 0);
    }

    Stream stream() {
        return Stream.cuda(context.device(), stream);
    }

    /** As an engine does that uses default streams. */
    void makeCurrent() {
        SET_CURRENT.call(TO_CONTEXT.ask(handle));
    }

    @Override
    public void close() {
        context.makeCurrent();
        DESTROY_STREAM.call(stream);
        DESTROY.call(handle);
    }
}
