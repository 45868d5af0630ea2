package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.RowSpread;
import io.deepep.spi.Region;
import io.deepep.spi.Word;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

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
            rows = read(slot.memory());
        }
        return rows;
    }

    /** Reads what {@link #record} has copied. */
    private RowSpread read(MemorySegment memory) {
        EpTopology topology = state.topology;
        int me = topology.rank();
        int numRanks = topology.numRanks();
        int firstCount = HeaderWord.firstCount(topology);
        // Peers may have begun their next call, in the other parity; this rank's own had not.
        int even = Word.epoch(word(memory, 0, me, 0));
        int odd = Word.epoch(word(memory, 1, me, 0));
        int parity = odd - even > 0 ? 1 : 0;
        int epoch = parity == 1 ? odd : even;
        int[] sent = new int[numRanks];
        int[] received = new int[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            sent[rank] = Word.value(word(memory, parity, me, firstCount + rank));
            // A masked rank has left the header of an earlier call.
            long count = word(memory, parity, rank, firstCount + me);
            received[rank] = Word.epoch(count) == epoch ? Word.value(count) : 0;
        }
        if (!topology.isInternode()) {
            return new RowSpread(sent, received, Arrays.stream(sent).sum() - sent[me], 0);
        }
        long nvlink = 0;
        for (int rank = 0; rank < numRanks; rank++) {
            // The rank with this nvlRank has the token on every node that it reaches.
            nvlink += rank % topology.numNvlRanks() == topology.nvlRank() ? 0 : sent[rank];
        }
        return new RowSpread(sent, received, nvlink, rdmaRows(memory));
    }

    private long word(MemorySegment memory, int parity, int source, int idx) {
        Region headers = state.nvlLayout.headers();
        long at = parity * headers.stride0() + source * headers.stride1() + 8L * idx;
        return memory.get(ValueLayout.JAVA_LONG, at);
    }

    private long rdmaRows(MemorySegment memory) {
        MemorySegment ownRows = memory.asSlice(state.nvlLayout.headers().sizeBytes());
        EpTopology topology = state.topology;
        int numTokens = handle.numTokens();
        long rdma = 0;
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            for (int token = 0; token < numTokens && node != topology.rdmaRank(); token++) {
                long at = ((long) node * numTokens + token) * InternodeRouting.rowsBytes(topology);
                boolean reached = false;
                for (int nvlRank = 0; nvlRank < topology.numNvlRanks(); nvlRank++) {
                    reached |= ownRows.get(ValueLayout.JAVA_INT, at + 4L * nvlRank) >= 0;
                }
                rdma += reached ? 1 : 0;
            }
        }
        return rdma;
    }
}
