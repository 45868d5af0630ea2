package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

/** Memory of another process, mapped through CUDA IPC. */
final class IpcMemory extends CudaMemory {
    private static final CuCall CLOSE = CuCall.of("cuIpcCloseMemHandle", JAVA_LONG);

    private final long base;

    IpcMemory(CudaContext context, long base, long offset, long numBytes) {
        super(context, base + offset, numBytes);
        this.base = base;
    }

    @Override
    void release(long address) {
        CLOSE.call(base);
    }
}
