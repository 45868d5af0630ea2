package io.deepep.normal.cuda;

import io.deepep.cuda.CallEvent;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;

/**
 * What observers learn of one dispatch from device memory: the headers of its call and, across
 * nodes, where its tokens went, copied into mapped host memory behind its launch. Combines and
 * cached dispatches of the handle tell from it too.
 */
final class DispatchTrace {
    private final CudaNormalState state;
    private final CudaDispatchHandle handle;
    private final CallEvent event;
    private final PinnedSlots.Slot slot;
    private RowSpread rows;

    /**
     * Of the next run of the dispatch.
     *
     * @param event the end of its latest run
     * @param slot of {@link #slotBytes}; the traces of a dispatch share it, each until {@link
     *     #rows} of it were asked for or the next is made
     */
    DispatchTrace(
            CudaNormalState state,
            CudaDispatchHandle handle,
            CallEvent event,
            PinnedSlots.Slot slot) {
        this.state = state;
        this.handle = handle;
        this.event = event;
        this.slot = slot;
    }

    static long slotBytes(CudaNormalState state, CudaDispatchHandle handle) {
        return state.nvlLayout.headers().sizeBytes() + ownRowsBytes(state, handle);
    }

    private static long ownRowsBytes(CudaNormalState state, CudaDispatchHandle handle) {
        return handle.routing == null
                ? 0
                : InternodeRouting.ownRowsBytes(state.topology, handle.numTokens());
    }

    /** Enqueues the copies, behind the dispatch's kernel. */
    void record() {
        Region headers = state.nvlLayout.headers();
        long target = slot.deviceAddress();
        state.stream.copy(target, state.nvlAddress() + headers.offset(), headers.sizeBytes());
        long ownRowsBytes = ownRowsBytes(state, handle);
        if (ownRowsBytes > 0) {
            state.stream.copy(
                    target + headers.sizeBytes(), handle.routing.ownRows().address(), ownRowsBytes);
        }
    }

    /** Null while the GPU is not done with the dispatch; undefined if that failed. */
    synchronized RowSpread rows() {
        if (rows == null && event.isDone()) {
            MemorySegment memory = slot.memory();
            Region headers = state.nvlLayout.headers();
            rows = RowSpread.read(memory, headers, state.topology, handle.numTokens());
        }
        return rows;
    }
}
