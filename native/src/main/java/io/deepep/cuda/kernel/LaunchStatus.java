package io.deepep.cuda.kernel;

import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.function.Function;

/**
 * What an operation's launches tell the host: a {@code StatusBlock} in mapped host memory. Keeps
 * the failure of the latest run until there is another run.
 */
public class LaunchStatus {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;
    protected static final long DONE = STRUCT.offset("done");
    private static final long CODE = STRUCT.offset("code");
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final long NOT_KNOWN = -1;

    private static final System.Logger LOG = System.getLogger(LaunchStatus.class.getName());

    protected final MemorySegment memory;
    private final long deviceAddress;
    private final CallTimeouts timeouts;
    private final Function<Fault, RuntimeException> failures;
    private RuntimeException failure;

    /** What {@link #lastRun} was when somebody asked for {@link #failure}. */
    private long failedRun;

    /**
     * The block at the beginning of {@code slot}.
     *
     * @param timeouts how long the operation waits for a peer
     * @param failures what faults mean to the caller
     */
    protected LaunchStatus(
            PinnedSlots.Slot slot,
            CallTimeouts timeouts,
            Function<Fault, RuntimeException> failures) {
        this.timeouts = timeouts;
        this.failures = failures;
        this.memory = slot.memory().asSlice(0, STRUCT.numBytes());
        this.deviceAddress = slot.deviceAddress();
        memory.fill((byte) 0);
    }

    /** How long the operation waits for a peer. */
    public final CallTimeouts timeouts() {
        return timeouts;
    }

    /** Tells kernels where to write, and how long to wait. */
    public void fill(Params group) {
        group.set("status", deviceAddress)
                .set("timeout_ns", timeouts.nanos())
                .set("start_timeout_ns", timeouts.startNanos());
    }

    /**
     * Forgets the run before. A failure that nobody has asked for is thrown now if it leaves the
     * ranks out of step; what all ranks agreed on is logged, because a rank that has asked goes on.
     */
    public void beginRun() {
        if (takeFailure()) {
            if (!Fault.isAgreed(failure)) {
                throw failure;
            }
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a run failed, but nothing waited for its end",
                    failure);
        }
        failure = null;
    }

    /**
     * What went wrong in the runs that are over, or null; once asked, the same until another run.
     */
    public final RuntimeException failure() {
        takeFailure();
        if (failure == null) {
            return null;
        }
        long run = lastRun();
        if (failedRun == NOT_KNOWN) {
            failedRun = run;
        } else if (run != failedRun) {
            failure = null;
        }
        return failure;
    }

    /** Whether there is a new failure, which is {@link #failure} then. */
    private boolean takeFailure() {
        int code = (int) INT.getAcquire(memory, CODE); // pairs with the release in record_fault
        if (code == 0) {
            return false;
        }
        failure = failures.apply(fault(code));
        failedRun = NOT_KNOWN;
        INT.setRelease(memory, CODE, 0);
        return true;
    }

    private Fault fault(int code) {
        return new Fault(
                FaultCode.of(code),
                FaultPhase.of(intOf("phase")),
                intOf("rank"),
                intOf("peer"),
                intOf("token"),
                intOf("k"),
                memory.get(ValueLayout.JAVA_LONG, STRUCT.offset("expected")),
                memory.get(ValueLayout.JAVA_LONG, STRUCT.offset("seen")));
    }

    /** A value of the block. */
    protected final int intOf(String field) {
        return memory.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
    }

    /** The {@code done} word, which differs from run to run; 0 if the run has not ended. */
    protected long lastRun() {
        return (long) LONG.getAcquire(memory, DONE);
    }
}
