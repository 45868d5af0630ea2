package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.PinnedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Memory for the software network card and a GPU: what the card reaches is mapped host memory,
 * tables lie on the GPU.
 */
public final class GpuNicMemory implements NicGroup.Tables, AutoCloseable {
    private final CudaContext context;
    private final Deque<AutoCloseable> pieces = new ArrayDeque<>();

    /** Nothing yet. */
    public GpuNicMemory(CudaContext context) {
        this.context = context;
    }

    /** Zeroed memory that the GPU and Java see at one address. */
    public MemorySegment allocate(long numBytes) {
        PinnedMemory memory = PinnedMemory.allocate(context, numBytes);
        pieces.push(memory);
        if (memory.deviceAddress() != memory.segment().address()) {
            throw new AssertionError("host and GPU name mapped memory differently");
        }
        return memory.segment();
    }

    @Override
    public long place(long numBytes, NicGroup.TableWriter writer) {
        CudaMemory memory = CudaMemory.allocate(context, numBytes);
        pieces.push(memory);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment image = arena.allocate(numBytes, 64);
            writer.write(image, memory.address());
            memory.copyFrom(0, image);
        }
        return memory.address();
    }

    /** Frees all: not before the GPU is done with it. */
    @Override
    public void close() {
        while (!pieces.isEmpty()) {
            try {
                pieces.pop().close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }
}
