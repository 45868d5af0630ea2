package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuStructs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What another process of this host needs to map device memory of this one (CUDA IPC): the driver's
 * handle of the whole allocation, and which part of it is meant. Travels as {@link #NUM_BYTES}
 * bytes.
 */
public final class IpcHandle {
    /** Bytes of the encoded handle. */
    public static final int NUM_BYTES = 64 + 3 * Long.BYTES;

    private static final CuCall GET = CuCall.of("cuIpcGetMemHandle", ADDRESS, JAVA_LONG);
    private static final CuCall GET_RANGE =
            CuCall.of("cuMemGetAddressRange_v2", ADDRESS, ADDRESS, JAVA_LONG);

    private final byte[] raw;
    private final long pid;
    private final long offset;
    private final long numBytes;

    private IpcHandle(byte[] raw, long pid, long offset, long numBytes) {
        this.raw = raw;
        this.pid = pid;
        this.offset = offset;
        this.numBytes = numBytes;
    }

    /**
     * The handle of plain device memory; valid as long as the memory is.
     *
     * @throws IllegalArgumentException if it is virtual or imported memory, which CUDA IPC cannot
     *     hand on
     */
    public static IpcHandle of(CudaMemory memory) {
        if (!(memory instanceof CudaMemory.Allocated)) {
            throw new IllegalArgumentException(
                    memory.getClass().getSimpleName()
                            + " has no IPC handle; use CudaMemory.allocate");
        }
        return of(memory.context(), memory.address(), memory.numBytes());
    }

    /**
     * The handle of a part of an allocation that {@code cuMemAlloc} made in this process, by
     * whomever.
     */
    public static IpcHandle of(CudaContext context, long address, long numBytes) {
        context.makeCurrent();
        long offset = address - GET_RANGE.ask(MemorySegment.NULL, address);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(CuStructs.IPC_HANDLE);
            GET.invoke(handle, address);
            return new IpcHandle(
                    handle.toArray(JAVA_BYTE), ProcessHandle.current().pid(), offset, numBytes);
        }
    }

    /** Reads what {@link #toBytes()} wrote. */
    public static IpcHandle fromBytes(byte[] bytes) {
        if (bytes.length != NUM_BYTES) {
            throw new IllegalArgumentException(
                    "bytes.length=%s is not %s, the size of an IPC handle"
                            .formatted(bytes.length, NUM_BYTES));
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        byte[] raw = new byte[64];
        buffer.get(raw);
        return new IpcHandle(raw, buffer.getLong(), buffer.getLong(), buffer.getLong());
    }

    /** The handle as bytes, to send to the other process. */
    public byte[] toBytes() {
        ByteBuffer buffer = ByteBuffer.allocate(NUM_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        return buffer.put(raw).putLong(pid).putLong(offset).putLong(numBytes).array();
    }

    /** Size of the memory that it gives access to. */
    public long numBytes() {
        return numBytes;
    }

    /**
     * Maps the memory into this process, with access from {@code context}'s GPU. Close it before
     * the owner frees it. Can be opened several times, also by several threads: a context maps it
     * once.
     *
     * @throws IllegalArgumentException if it is this process's own memory, which is reached by its
     *     address
     */
    public CudaMemory open(CudaContext context) {
        if (pid == ProcessHandle.current().pid()) {
            throw new IllegalArgumentException(
                    "pid=%s is this process; within a process use addresses and PeerAccess"
                            .formatted(pid));
        }
        return IpcMemory.open(context, raw, offset, numBytes);
    }
}
