package io.deepep.normal.cuda;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.cuda.PointerInfo;
import io.deepep.normal.NormalChecks;
import io.deepep.normal.NormalRows;

/** How the rows that a rank gives to a combine come before its peers. */
enum RowsAccess {
    /** They lie in the heap. */
    HEAP,

    /** Peers pull from the caller's memory. */
    DIRECT,

    /** Some blocks of the combine bring them into the heap while peers are pulling. */
    STREAMED,

    /** A launch before the combine brings them into the heap, or sums the expanded layout there. */
    STAGED,

    /**
     * A launch before the combine casts them into the heap, or the sums of the expanded layout, or
     * copies there what is FP8 already, in the form in which it travels.
     */
    CAST,

    /**
     * Several nodes: that launch brings in the rows that other ranks pull; those that this rank
     * reads alone stay.
     */
    STAGED_FOR_PEERS;

    /** The copy engine loads rows by units of so many bytes. */
    private static final int UNIT_BYTES = 16;

    static RowsAccess of(
            CudaNormalState state, CudaDispatchHandle handle, Config config, CombinePlan plan) {
        Tensor x = plan.x();
        if (plan.format() == CombineFormat.FP8) {
            if (NormalRows.travelAsTheyAre(plan) && state.nvlContains(x)) {
                return HEAP;
            }
            NormalChecks.combineFromElsewhere(plan, state.nvlLayout, state.nvlAddress());
            return CAST;
        }
        long stride = x.stride(0) * DType.BF16.sizeBytes();
        boolean aligned = x.address() % UNIT_BYTES == 0 && stride % UNIT_BYTES == 0;
        if (handle.expanded() || !aligned) {
            NormalChecks.combineFromElsewhere(plan, state.nvlLayout, state.nvlAddress());
            return STAGED;
        }
        if (state.nvlContains(x)) {
            return HEAP;
        }
        boolean alone = state.topology.numRanks() == 1;
        if (alone || (state.peersReachPlainMemory && isPlain(state, x))) {
            return DIRECT;
        }
        if (state.internode != null) {
            return STAGED_FOR_PEERS;
        }
        boolean blocksForBoth = config.numSms() > 1 && !state.isLargeNode();
        return blocksForBoth ? STREAMED : STAGED;
    }

    /**
     * Plain device memory, which peers of this process have access to and which the driver frees
     * only once no kernel of theirs runs: a rank that gives up early cannot pull it away under a
     * peer that comes late.
     */
    private static boolean isPlain(CudaNormalState state, Tensor x) {
        return PointerInfo.of(x.address())
                .filter(info -> info.plain() && info.device().equals(state.context.device()))
                .isPresent();
    }
}
