package io.deepep.lowlatency.cuda;

import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.PinnedSlots;
import io.deepep.cuda.StatusStruct;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * What an operation's launches tell the host: a {@code StatusBlock} in mapped host memory, of which
 * they write nothing unless something fails. Several runs may be under way; the first failure of
 * them is kept.
 */
final class LowLatencyStatus {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;
    private static final long CODE = STRUCT.offset("code");
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final System.Logger LOG = System.getLogger(LowLatencyStatus.class.getName());

    private final MemorySegment memory;
    private final long deviceAddress;
    private final LowLatencyFaults faults;
    private RuntimeException failure;

    /** The block at the beginning of {@code slot}. */
    LowLatencyStatus(PinnedSlots.Slot slot, LowLatencyFaults faults) {
        this.faults = faults;
        this.memory = slot.page().segment().asSlice(slot.offset(), STRUCT.numBytes());
        this.deviceAddress = slot.deviceAddress();
        memory.fill((byte) 0);
    }

    long deviceAddress() {
        return deviceAddress;
    }

    /**
     * Forgets the failure of the run before. One that nobody has asked for is thrown now if it
     * leaves the ranks out of step; what all ranks agreed on is logged, because a rank that has
     * asked goes on.
     */
    void beginRun() {
        if ((int) INT.getAcquire(memory, CODE) != 0) {
            RuntimeException unseen = failure();
            if (!LowLatencyFaults.isAgreed(unseen)) {
                throw unseen;
            }
            LOG.log(System.Logger.Level.WARNING, "nobody asked how a run ended", unseen);
        }
        failure = null;
    }

    /** What went wrong in the runs that are over, or null; the same until another run. */
    RuntimeException failure() {
        int code = (int) INT.getAcquire(memory, CODE); // pairs with the release in record_fault
        if (code != 0) {
            failure = faults.failure(code, memory);
            INT.setRelease(memory, CODE, 0);
        }
        return failure;
    }
}
