package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * What an operation's launches tell the host: a {@code StatusBlock} in mapped host memory, of which
 * they write nothing unless something fails. Several runs may be under way; the first failure of
 * them is kept.
 *
 * <p>Replays of a graph run the operation without the host, so a launch also notes itself in device
 * memory. The host looks there only once something has failed.
 */
final class LowLatencyStatus {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;
    private static final long CODE = STRUCT.offset("code");
    private static final long DONE = STRUCT.offset("done");
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final System.Logger LOG = System.getLogger(LowLatencyStatus.class.getName());

    private final MemorySegment memory;
    private final long deviceAddress;
    private final DevicePool.Block ran;
    private final CudaStream stream;
    private final LowLatencyFaults faults;
    private RuntimeException failure;

    /** The launch that had run last when {@link #failure} was found. */
    private long failedRun;

    /**
     * The block at the beginning of {@code slot}.
     *
     * @param ran where launches note themselves, a long of device memory
     * @param stream that they run on
     */
    LowLatencyStatus(
            PinnedSlots.Slot slot,
            DevicePool.Block ran,
            CudaStream stream,
            LowLatencyFaults faults) {
        this.ran = ran;
        this.stream = stream;
        this.faults = faults;
        this.memory = slot.memory().asSlice(0, STRUCT.numBytes());
        this.deviceAddress = slot.deviceAddress();
        memory.fill((byte) 0);
    }

    /** Tells kernels where to write, and how long to wait. */
    void fill(Params group) {
        group.set("status", deviceAddress)
                .set("ran", ran.address())
                .set("timeout_ns", faults.timeouts().nanos())
                .set("start_timeout_ns", faults.timeouts().startNanos());
    }

    /**
     * Forgets the failure of the run before. One that nobody has asked for is thrown now if it
     * leaves the ranks out of step; what all ranks agreed on is logged, because a rank that has
     * asked goes on.
     */
    void beginRun() {
        failure = null;
        RuntimeException unseen = takeFailure();
        if (unseen != null && !LowLatencyFaults.isAgreed(unseen)) {
            throw unseen;
        }
        if (unseen != null) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a run failed, but nothing waited for its end",
                    unseen);
        }
    }

    /**
     * What went wrong in the runs that are over, or null; once asked, the same until another run.
     */
    RuntimeException failure() {
        RuntimeException latest = takeFailure();
        if (latest != null) {
            failure = latest;
            failedRun = lastRun();
        } else if (failure != null && lastRun() != failedRun) {
            failure = null;
        }
        return failure;
    }

    private RuntimeException takeFailure() {
        int code = (int) INT.getAcquire(memory, CODE); // pairs with the release in record_fault
        if (code == 0) {
            return null;
        }
        RuntimeException taken = faults.failure(code, memory);
        INT.setRelease(memory, CODE, 0);
        return taken;
    }

    /** Waits for the stream; of a closed one, what was seen last is the last. */
    private long lastRun() {
        synchronized (stream) {
            if (stream.isClosed()) {
                return failedRun;
            }
            stream.copy(memory.address() + DONE, ran.address(), Long.BYTES);
        }
        stream.awaitEnd();
        return (long) LONG.getAcquire(memory, DONE);
    }
}
