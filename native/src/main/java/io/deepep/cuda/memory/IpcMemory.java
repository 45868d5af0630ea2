package io.deepep.cuda.memory;

import io.deepep.cuda.CudaContext;

/** Memory of another process, mapped through CUDA IPC. */
final class IpcMemory extends CudaMemory {
    private final byte[] handle;

    private IpcMemory(CudaContext context, byte[] handle, long base, long offset, long numBytes) {
        super(context, base + offset, numBytes);
        this.handle = handle;
    }

    /** Maps an allocation, unless the context has it mapped, and takes a part of it. */
    static IpcMemory open(CudaContext context, byte[] handle, long offset, long numBytes) {
        context.makeCurrent();
        long base = IpcMappings.OF_PROCESS.open(context.handle(), handle);
        return new IpcMemory(context, handle, base, offset, numBytes);
    }

    @Override
    void release(long address) {
        IpcMappings.OF_PROCESS.close(context().handle(), handle);
    }
}
