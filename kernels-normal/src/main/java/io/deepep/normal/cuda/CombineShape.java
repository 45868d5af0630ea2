package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.cuda.CudaFunction;
import io.deepep.normal.CombineRoles;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;

/**
 * The kernel of a combine, and how it cuts rows into chunks and its shared memory into slots for
 * them.
 *
 * @param roles several nodes: what blocks do; otherwise null
 * @param ringsOffset several nodes: where the states of rings begin in shared memory
 */
record CombineShape(
        CudaFunction kernel,
        CombineRoles roles,
        int numThreads,
        int chunkBytes,
        int numChunks,
        int numSlots,
        int ringsOffset,
        int sharedBytes) {
    private static final int MIN_CONSUMERS = 192;
    private static final int BYTES_PER_CONSUMER =
            KernelConstants.VECTORS * KernelConstants.VECTOR_BYTES;
    private static final int MAX_CHUNK_BYTES = KernelConstants.MAX_CONSUMERS * BYTES_PER_CONSUMER;
    private static final int SMALL_ROW_BYTES = 2048;

    /** A block that stages has so many in flight. */
    private static final int MIN_SLOTS = KernelConstants.STAGE_WARPS * KernelConstants.STAGE_DEPTH;

    static CombineShape of(CudaNormalState state, Config config, int rowBytes) {
        boolean internode = state.internode != null;
        CudaFunction kernel = internode ? state.internode.kernels.combine() : state.kernels.combine;
        CombineRoles roles = internode ? CombineRoles.of(config.numSms(), state.topology) : null;
        int ringBytes =
                internode
                        ? KernelConstants.RING_STATE_BYTES
                                * roles.mostChannels()
                                * state.topology.numRdmaRanks()
                        : 0;
        int fewest = Math.ceilDiv(rowBytes, MAX_CHUNK_BYTES);
        int unit =
                rowBytes > SMALL_ROW_BYTES ? (int) Layout.LINE_BYTES : KernelConstants.VECTOR_BYTES;
        int chunkBytes = Math.ceilDiv(Math.ceilDiv(rowBytes, fewest), unit) * unit;
        int room = state.kernels.sharedBytes - ringBytes;
        int numSlots = Math.min(KernelConstants.MAX_SLOTS, room / chunkBytes);
        if (numSlots < MIN_SLOTS) {
            throw new IllegalArgumentException(
                    "rows of "
                            + rowBytes
                            + " bytes need "
                            + MIN_SLOTS * chunkBytes
                            + " bytes of shared memory, "
                            + state.context
                            + " has "
                            + room);
        }
        int warp = KernelConstants.WARP;
        int consumers = Math.ceilDiv(chunkBytes / BYTES_PER_CONSUMER, warp) * warp;
        int serviceWarps =
                internode ? KernelConstants.INTERNODE_SERVICE_WARPS : KernelConstants.SERVICE_WARPS;
        int numThreads = serviceWarps * warp + Math.max(MIN_CONSUMERS, consumers);
        int ringsOffset = numSlots * chunkBytes;
        int sharedBytes = ringsOffset + ringBytes;
        state.requireResident(kernel, config.numSms(), numThreads, sharedBytes);
        return new CombineShape(
                kernel,
                roles,
                numThreads,
                chunkBytes,
                Math.ceilDiv(rowBytes, chunkBytes),
                numSlots,
                ringsOffset,
                sharedBytes);
    }
}
