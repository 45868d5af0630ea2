package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuStructs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.function.Function;

/**
 * Memory of another process, mapped through CUDA IPC. A context maps an allocation once; ranks that
 * are threads of one process and share a GPU share that mapping.
 */
final class IpcMemory extends CudaMemory {
    private static final int LAZY_ENABLE_PEER_ACCESS = 1;

    private static final CuCall OPEN =
            CuCall.of("cuIpcOpenMemHandle_v2", ADDRESS, CuStructs.IPC_HANDLE, JAVA_INT);
    private static final CuCall CLOSE = CuCall.of("cuIpcCloseMemHandle", JAVA_LONG);

    private static final SharedMappings<Allocation, Long> MAPPINGS =
            new SharedMappings<>(CLOSE::call);

    /**
     * An allocation as a context sees it.
     *
     * @param handle the driver's, which no other allocation ever has
     */
    private record Allocation(long context, ByteBuffer handle) {}

    private final Allocation allocation;

    private IpcMemory(
            CudaContext context, Allocation allocation, long base, long offset, long numBytes) {
        super(context, base + offset, numBytes);
        this.allocation = allocation;
    }

    /** Maps an allocation, unless the context has it mapped, and takes a part of it. */
    static IpcMemory open(CudaContext context, byte[] handle, long offset, long numBytes) {
        Allocation allocation = new Allocation(context.handle(), ByteBuffer.wrap(handle));
        long base =
                MAPPINGS.open(
                        context::makeCurrent, allocation, () -> map(handle), Function.identity());
        return new IpcMemory(context, allocation, base, offset, numBytes);
    }

    private static long map(byte[] handle) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct =
                    arena.allocate(CuStructs.IPC_HANDLE).copyFrom(MemorySegment.ofArray(handle));
            return OPEN.ask(struct, LAZY_ENABLE_PEER_ACCESS);
        }
    }

    @Override
    void release(long address) {
        MAPPINGS.close(context()::makeCurrent, allocation);
    }
}
