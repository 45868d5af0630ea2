package io.deepep.cuda.rdma;

import io.deepep.error.NativeCallException;
import java.lang.foreign.MemorySegment;

/** A register of the card that whoever has written entries rings. */
public final class DoorbellRegister implements AutoCloseable {
    private static final int NOT_CACHED = 1;
    private static final int NOT_CACHED_DEDICATED = 1 << 31;
    private static final int WRITE_COMBINING = 0;

    private final RdmaDevice device;
    private final MemorySegment uar;
    private final long numBytes;

    private DoorbellRegister(RdmaDevice device, MemorySegment uar, long numBytes) {
        this.device = device;
        this.uar = uar;
        this.numBytes = numBytes;
    }

    /**
     * A register, mapped into this process: not cached, where the driver can. With rdma-core before
     * version 45, those that are not cached are one for the whole device.
     */
    public static DoorbellRegister allocate(RdmaDevice device) {
        NativeCallException failure = null;
        for (int kind : new int[] {NOT_CACHED_DEDICATED, NOT_CACHED, WRITE_COMBINING}) {
            try {
                MemorySegment uar =
                        device.libraries().allocUar.make(device.name(), device.context(), kind);
                long numBytes =
                        kind == WRITE_COMBINING ? device.facts().doorbellBytes() : Long.BYTES;
                return new DoorbellRegister(device, uar, numBytes);
            } catch (NativeCallException refused) {
                failure = refused;
            }
        }
        throw failure;
    }

    /** Where it is mapped. */
    public long address() {
        return RdmaStructs.UAR_REGISTER.get(uar);
    }

    /** Bytes that may be written. */
    public long numBytes() {
        return numBytes;
    }

    int page() {
        return (int) RdmaStructs.UAR_PAGE.get(uar);
    }

    /** Not before the queues that name it are gone. */
    @Override
    public void close() {
        device.libraries().freeUar.call(uar);
    }
}
