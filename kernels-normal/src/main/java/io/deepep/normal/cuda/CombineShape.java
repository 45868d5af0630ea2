package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.cuda.CudaFunction;
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
    private static final int SERVICE_THREADS = 64;
    private static final int INTERNODE_SERVICE_THREADS = 96;
    private static final int MIN_CONSUMERS = 192;
    private static final int BYTES_PER_CONSUMER = 32;
    private static final int MAX_CHUNK_BYTES = 16384;
    private static final int SMALL_ROW_BYTES = 2048;

    /** A block that stages has so many in flight. */
    private static final int MIN_SLOTS = 12;

    private static final int MAX_SLOTS = 64;
    private static final int VECTOR_BYTES = 16;
    private static final int WARP = 32;

    static CombineShape of(CudaNormalState state, Config config, int rowBytes) {
        boolean internode = state.internode != null;
        CudaFunction kernel = internode ? state.internode.kernels.combine() : state.kernels.combine;
        CombineRoles roles = internode ? CombineRoles.of(config.numSms(), state.topology) : null;
        int ringBytes =
                internode
                        ? DispatchShape.RING_STATE_BYTES
                                * roles.mostChannels()
                                * state.topology.numRdmaRanks()
                        : 0;
        int fewest = Math.ceilDiv(rowBytes, MAX_CHUNK_BYTES);
        int unit = rowBytes > SMALL_ROW_BYTES ? (int) Layout.LINE_BYTES : VECTOR_BYTES;
        int chunkBytes = Math.ceilDiv(Math.ceilDiv(rowBytes, fewest), unit) * unit;
        int room = state.kernels.sharedBytes - ringBytes;
        int numSlots = Math.min(MAX_SLOTS, room / chunkBytes);
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
        int consumers = Math.ceilDiv(chunkBytes / BYTES_PER_CONSUMER, WARP) * WARP;
        int service = internode ? INTERNODE_SERVICE_THREADS : SERVICE_THREADS;
        int numThreads = service + Math.max(MIN_CONSUMERS, consumers);
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
