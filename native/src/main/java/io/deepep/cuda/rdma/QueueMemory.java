package io.deepep.cuda.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Memory in which a card finds queues. */
public final class QueueMemory implements AutoCloseable {
    private static final int READ_AND_WRITE = 1;
    private static final long BY_DMABUF = 1;
    private static final long PAGE_BYTES = 4096;

    private final RdmaDevice device;
    private final MemorySegment umem;

    private QueueMemory(RdmaDevice device, MemorySegment umem) {
        this.device = device;
        this.umem = umem;
    }

    /** Memory of the host, or of a GPU where nvidia-peermem is loaded. */
    public static QueueMemory register(RdmaDevice device, long address, long numBytes) {
        return new QueueMemory(
                device,
                device.libraries()
                        .regUmem
                        .make(
                                device.name(),
                                device.context(),
                                MemorySegment.ofAddress(address),
                                numBytes,
                                READ_AND_WRITE));
    }

    /**
     * Memory of a GPU, all of a dma-buf.
     *
     * @param descriptor of the dma-buf; may be closed afterwards
     */
    public static QueueMemory registerDmaBuf(RdmaDevice device, int descriptor, long numBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment in = arena.allocate(RdmaStructs.UMEM_IN_BYTES, Long.BYTES);
            RdmaStructs.UMEM_IN_SIZE.set(in, numBytes);
            RdmaStructs.UMEM_IN_ACCESS.set(in, READ_AND_WRITE);
            RdmaStructs.UMEM_IN_PAGES.set(in, -PAGE_BYTES);
            RdmaStructs.UMEM_IN_MASK.set(in, BY_DMABUF);
            RdmaStructs.UMEM_IN_DMABUF.set(in, descriptor);
            return new QueueMemory(
                    device, device.libraries().regUmemEx.make(device.name(), device.context(), in));
        }
    }

    RdmaDevice device() {
        return device;
    }

    int number() {
        return (int) RdmaStructs.UMEM_NUMBER.get(umem);
    }

    /** Not before the queues in it are gone. */
    @Override
    public void close() {
        device.libraries().deregUmem.call(umem);
    }
}
