package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.normal.CombineRoles;
import io.deepep.normal.Rails;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;
import io.deepep.spi.RowFormat;

/**
 * How a combine cuts rows into chunks, and the shared memory of its blocks into slots for them.
 *
 * @param roles several nodes: what blocks do; otherwise null
 * @param slotBytes of shared memory for a chunk
 * @param rowBytes of a row as it travels, with its padding
 * @param ringsOffset several nodes: where the states of rings begin in shared memory
 */
record CombineShape(
        CombineRoles roles,
        int numThreads,
        int chunkBytes,
        int numChunks,
        int slotBytes,
        int rowBytes,
        int numSlots,
        int ringsOffset,
        int sharedBytes) {
    private static final int MIN_CONSUMERS = 192;
    private static final int SMALL_ROW_BYTES = 2048;

    /** A block that stages has so many in flight. */
    private static final int MIN_SLOTS = KernelConstants.STAGE_WARPS * KernelConstants.STAGE_DEPTH;

    /** Channels of a chunk of FP8 whose scales the copy engine can move. */
    private static final int FP8_UNIT =
            KernelConstants.VECTOR_BYTES / Float.BYTES * Fp8E4m3.CHANNELS_PER_SCALE;

    /**
     * The shape for rows of a format: what kernels call the bytes of a chunk are those of its
     * elements; in FP8 their scales lie behind them.
     */
    static CombineShape of(CudaNormalState state, Config config, RowFormat format) {
        boolean internode = state.internode != null;
        boolean fp8 = format.dtype() == DType.FP8_E4M3;
        int elementBytes = (int) format.elementBytes();
        CombineRoles roles =
                internode ? CombineRoles.of(config.numSms(), state.topology, format.dtype()) : null;
        int ringBytes =
                internode
                        ? KernelConstants.RING_STATE_BYTES
                                * roles.mostChannels()
                                * Rails.numCells(state.topology)
                        : 0;
        int room = state.sharedBytes() - ringBytes;
        int chunkBytes = chunkBytes(elementBytes, fp8, room);
        int slotBytes = slotBytes(chunkBytes, fp8);
        int numSlots = room / slotBytes;
        if (numSlots < MIN_SLOTS) {
            throw new IllegalArgumentException(
                    "rows of %s bytes need %s bytes of shared memory, but %s has %s; use a smaller hidden size"
                            .formatted(elementBytes, MIN_SLOTS * slotBytes, state.context, room));
        }
        int warp = KernelConstants.WARP;
        int consumers = Math.ceilDiv(chunkBytes / bytesPerConsumer(fp8), warp) * warp;
        int serviceWarps =
                internode ? KernelConstants.INTERNODE_SERVICE_WARPS : KernelConstants.SERVICE_WARPS;
        int numThreads = serviceWarps * warp + Math.max(MIN_CONSUMERS, consumers);
        int ringsOffset = numSlots * slotBytes;
        int sharedBytes = ringsOffset + ringBytes;
        state.requireResident(
                calls -> calls.combine(fp8), config.numSms(), numThreads, sharedBytes);
        return new CombineShape(
                roles,
                numThreads,
                chunkBytes,
                Math.ceilDiv(elementBytes, chunkBytes),
                slotBytes,
                (int) format.strideBytes(),
                numSlots,
                ringsOffset,
                sharedBytes);
    }

    /**
     * Bytes of the elements of a chunk: the largest that the consumers of a block can take, and of
     * which enough have room.
     */
    static int chunkBytes(int elementBytes, boolean fp8, int room) {
        int unit = KernelConstants.VECTOR_BYTES;
        if (fp8) {
            unit = FP8_UNIT;
        } else if (elementBytes > SMALL_ROW_BYTES) {
            unit = (int) Layout.LINE_BYTES;
        }
        int number =
                Math.ceilDiv(elementBytes, KernelConstants.MAX_CONSUMERS * bytesPerConsumer(fp8));
        int chunkBytes;
        do {
            chunkBytes = Math.ceilDiv(Math.ceilDiv(elementBytes, number++), unit) * unit;
        } while (chunkBytes > unit && room / slotBytes(chunkBytes, fp8) < MIN_SLOTS);
        return chunkBytes;
    }

    private static int slotBytes(int chunkBytes, boolean fp8) {
        return fp8 ? (int) RowFormat.fp8(chunkBytes).strideBytes() : chunkBytes;
    }

    private static int bytesPerConsumer(boolean fp8) {
        return KernelConstants.VECTOR_BYTES * (fp8 ? 1 : KernelConstants.VECTORS);
    }
}
