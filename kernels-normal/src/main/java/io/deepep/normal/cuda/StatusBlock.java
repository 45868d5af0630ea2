package io.deepep.normal.cuda;

import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.Fault;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.Masks;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * What an operation's launches tell the host: a {@code StatusBlock} in mapped host memory. Keeps
 * the failure of the latest run until there is another run.
 */
final class StatusBlock {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;
    private static final long READY = STRUCT.offset("ready");
    private static final long DONE = STRUCT.offset("done");
    private static final long CODE = STRUCT.offset("code");
    private static final long NUM_ROWS = STRUCT.offset("num_rows");
    private static final long NUM_EXPANDED_ROWS = STRUCT.offset("num_expanded_rows");
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private static final System.Logger LOG = System.getLogger(StatusBlock.class.getName());

    private final MemorySegment memory;
    private final long deviceAddress;
    private final FaultMessages messages;
    private final Masks masks;
    private RuntimeException failure;

    /** The {@code done} word of the run that failed with {@link #failure}. */
    private long failedRun;

    /** The block at the beginning of {@code slot}. */
    StatusBlock(PinnedSlots.Slot slot, FaultMessages messages, Masks masks) {
        this.messages = messages;
        this.masks = masks;
        this.memory = slot.memory().asSlice(0, STRUCT.numBytes());
        this.deviceAddress = slot.deviceAddress();
        clear();
    }

    /** How long its operation waits for a peer. */
    CallTimeouts timeouts() {
        return messages.timeouts();
    }

    long deviceAddress() {
        return deviceAddress;
    }

    /**
     * Forgets the run before; only while none is in flight. A failure that nobody has asked for is
     * thrown now if it leaves the ranks out of step; what all ranks agreed on is logged, because a
     * rank that has asked goes on.
     */
    void beginRun() {
        if ((int) INT.getAcquire(memory, CODE) != 0) {
            RuntimeException unseen = failure();
            if (!FaultMessages.isAgreed(unseen)) {
                throw unseen;
            }
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a run failed, but nothing waited for its end",
                    unseen);
        }
        clear();
    }

    private void clear() {
        failure = null;
        INT.setRelease(memory, CODE, 0);
        LONG.setRelease(memory, READY, 0L);
        LONG.setRelease(memory, DONE, 0L);
    }

    /** Whether counts are known, or why there are none; pairs with the release in report_counts. */
    boolean isReady() {
        return (long) LONG.getAcquire(memory, READY) != 0;
    }

    /** Whether there are counts, once {@link #isReady()}. */
    boolean hasCounts() {
        return (long) LONG.getAcquire(memory, READY) >>> 32 == 0;
    }

    /** Whether the launch has said its last word; pairs with the release in finish_call. */
    boolean isDone() {
        return (long) LONG.getAcquire(memory, DONE) != 0;
    }

    int numRows() {
        return memory.get(ValueLayout.JAVA_INT, NUM_ROWS);
    }

    int numExpandedRows() {
        return memory.get(ValueLayout.JAVA_INT, NUM_EXPANDED_ROWS);
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

    private int intOf(String field) {
        return memory.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
    }

    /**
     * What went wrong in the runs that are over, or null; once asked, the same until another run.
     */
    RuntimeException failure() {
        long run = (long) LONG.getAcquire(memory, DONE);
        int code = (int) INT.getAcquire(memory, CODE);
        if (code != 0) {
            Fault fault = fault(code);
            masks.learn(fault);
            failure = messages.failure(fault);
            failedRun = run;
            INT.setRelease(memory, CODE, 0);
        } else if (run != failedRun) {
            failure = null;
        }
        return failure;
    }
}
