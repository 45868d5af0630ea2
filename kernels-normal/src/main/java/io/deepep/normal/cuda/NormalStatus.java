package io.deepep.normal.cuda;

import io.deepep.cuda.kernel.LaunchStatus;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.Masks;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** What the launches of a call in normal mode tell the host: also their counts, and their end. */
final class NormalStatus extends LaunchStatus {
    private static final long READY = StatusStruct.BLOCK.offset("ready");
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    /** The block at the beginning of {@code slot}. */
    NormalStatus(PinnedSlots.Slot slot, FaultMessages messages, Masks masks) {
        super(
                slot,
                messages.timeouts(),
                fault -> {
                    masks.learn(fault);
                    return messages.failure(fault);
                });
    }

    /** {@inheritDoc} Only while none is in flight. */
    @Override
    public void beginRun() {
        super.beginRun();
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
        return lastRun() != 0;
    }

    int numRows() {
        return intOf("num_rows");
    }

    int numExpandedRows() {
        return intOf("num_expanded_rows");
    }
}
