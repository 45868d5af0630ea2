package io.deepep.normal.cuda;

import io.deepep.cuda.CallEvent;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * How long the latest run of an operation waited for each rank, if it is observed: nanoseconds that
 * its kernel stores in mapped host memory. Kernels of runs that nobody observes take no times.
 *
 * <pre>
 *   u64 waits[R][2]     for the rank's header, and for its end
 * </pre>
 */
final class WaitTimes {
    private final CudaNormalState state;
    private final Params group;
    private final CallEvent event;
    private final int numRanks;

    /** Taken with the first run that is observed. */
    private PinnedSlots.Slot slot;

    private boolean announced;
    private boolean counting;

    /**
     * Of an operation's launches.
     *
     * @param params of the launches, which begin with the group
     * @param event the end of the latest run
     */
    WaitTimes(CudaNormalState state, Params params, CallEvent event) {
        this.state = state;
        this.group = new Params(state.structs.group, params.memory());
        this.event = event;
        this.numRanks = state.topology.numRanks();
    }

    /**
     * The next run is observed.
     *
     * @param operation keeps the memory
     */
    void announce(Object operation) {
        if (slot == null) {
            slot = state.slots.take(operation, numBytes(), event);
        }
        announced = true;
    }

    /** Before a launch; if it is observed, no other of the operation is under way. */
    void begin() {
        if (announced) {
            memory().fill((byte) 0);
        }
        if (announced != counting) {
            group.set("waits", announced ? slot.deviceAddress() : 0);
            counting = announced;
        }
        announced = false;
    }

    /** Reports the latest run, which is observed, unless the GPU has not finished it. */
    void describe(RecordedFacts facts) {
        if (!event.isDone()) {
            return;
        }
        long[] waits = new long[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            for (int i = 0; i < KernelConstants.WAITS_PER_RANK; i++) {
                long idx = (long) rank * KernelConstants.WAITS_PER_RANK + i;
                waits[rank] += memory().getAtIndex(ValueLayout.JAVA_LONG, idx);
            }
        }
        facts.waits(waits);
    }

    private MemorySegment memory() {
        return slot.memory().asSlice(0, numBytes());
    }

    private long numBytes() {
        return (long) Long.BYTES * KernelConstants.WAITS_PER_RANK * numRanks;
    }
}
