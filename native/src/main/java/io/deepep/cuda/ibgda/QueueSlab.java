package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.cuda.rdma.QueueMemory;
import io.deepep.cuda.rdma.QueuePair;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * The memory of a group's queues, which the cards that they belong to reach: of the GPU, or of the
 * host. Each queue has its send queue and its completions, and after all of them come the records.
 */
final class QueueSlab implements AutoCloseable {
    private static final long RECORD_BYTES = 2L * QueuePair.ENTRY_BYTES;
    private static final byte NO_COMPLETION = -1;

    private final int numBlocks;
    private final long recordsAt;
    private final long numBytes;

    /** Null in memory of the host. */
    private final VirtualMemory onGpu;

    /** Null in memory of the GPU. */
    private final PinnedSlots.Slot onHost;

    private final List<QueueMemory> registered = new ArrayList<>();

    private QueueSlab(CudaContext context, int numQueues, int numBlocks, boolean inGpuMemory) {
        this.numBlocks = numBlocks;
        this.recordsAt = numQueues * queueBytes();
        this.numBytes = numBytes(numQueues, numBlocks);
        this.onGpu =
                inGpuMemory
                        ? VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.NONE)
                        : null;
        this.onHost = inGpuMemory ? null : takeOnHost(context, this, numBytes);
    }

    /** Of so many queues. */
    static long numBytes(int numQueues, int numBlocks) {
        return numQueues * (2L * numBlocks * QueuePair.ENTRY_BYTES + RECORD_BYTES);
    }

    /** Mapped memory of the host for as long as {@code owner} is reachable. */
    static PinnedSlots.Slot takeOnHost(CudaContext context, Object owner, long numBytes) {
        return PinnedSlots.ofProcess(context).take(owner, numBytes, null);
    }

    /**
     * Allocates it, and registers it with the devices.
     *
     * @param inGpuMemory whether to try that first
     */
    static QueueSlab open(
            CudaContext context,
            int numQueues,
            int numBlocks,
            boolean inGpuMemory,
            List<RdmaDevice> devices) {
        if (inGpuMemory) {
            try {
                return register(context, numQueues, numBlocks, true, devices);
            } catch (NativeCallException | DeepEpUnavailableException notReached) { // or is full
                System.getLogger(QueueSlab.class.getName())
                        .log(
                                System.Logger.Level.DEBUG,
                                "queues lie in memory of the host: {0}",
                                notReached.getMessage());
            }
        }
        return register(context, numQueues, numBlocks, false, devices);
    }

    /** The same in one of the two memories alone. */
    static QueueSlab register(
            CudaContext context,
            int numQueues,
            int numBlocks,
            boolean inGpuMemory,
            List<RdmaDevice> devices) {
        QueueSlab slab = new QueueSlab(context, numQueues, numBlocks, inGpuMemory);
        try {
            for (RdmaDevice device : devices) {
                slab.registered.add(slab.register(context, device));
            }
            slab.clear();
            return slab;
        } catch (RuntimeException | Error e) {
            slab.close();
            throw e;
        }
    }

    private QueueMemory register(CudaContext context, RdmaDevice device) {
        if (onGpu == null) {
            return QueueMemory.register(device, hostMemory().address(), numBytes);
        }
        return GpuReach.register(
                context,
                onGpu.address(),
                numBytes,
                descriptor -> QueueMemory.registerDmaBuf(device, descriptor, numBytes),
                () -> QueueMemory.register(device, onGpu.address(), numBytes));
    }

    /** Of the device at that place in the list. */
    QueueMemory memory(int device) {
        return registered.get(device);
    }

    /** As queues are before anything was sent. */
    void clear() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment image = onGpu != null ? arena.allocate(numBytes) : hostMemory();
            image.fill((byte) 0);
            for (long queue = 0; queue < recordsAt; queue += queueBytes()) {
                image.asSlice(queue + queueBytes() / 2, queueBytes() / 2).fill(NO_COMPLETION);
            }
            if (onGpu != null) {
                onGpu.copyFrom(0, image);
            }
        }
    }

    private long queueBytes() {
        return 2L * numBlocks * QueuePair.ENTRY_BYTES;
    }

    /** Where the parts of a queue are. */
    QueuePair.Place place(int queue) {
        long entries = queue * queueBytes();
        long record = recordsAt + queue * RECORD_BYTES;
        return new QueuePair.Place(
                entries, entries + queueBytes() / 2, record, record + QueuePair.ENTRY_BYTES);
    }

    /** Of the first byte, for kernels. */
    long deviceAddress() {
        return onGpu != null ? onGpu.address() : onHost.deviceAddress();
    }

    private MemorySegment hostMemory() {
        return onHost.memory().asSlice(0, numBytes);
    }

    /** The latest completion of a queue. */
    MemorySegment completion(int queue, Arena arena) {
        long at = place(queue).completions();
        if (onGpu == null) {
            return hostMemory().asSlice(at, QueuePair.ENTRY_BYTES);
        }
        MemorySegment copy = arena.allocate(QueuePair.ENTRY_BYTES, Long.BYTES);
        onGpu.copyTo(at, copy);
        return copy;
    }

    /** Not before the queues are gone. */
    @Override
    public void close() {
        registered.reversed().forEach(QueueMemory::close);
        if (onGpu != null) {
            onGpu.close();
        }
    }
}
