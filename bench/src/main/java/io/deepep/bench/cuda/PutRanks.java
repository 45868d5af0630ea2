package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaMemory;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelStruct.Params;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.NetworkStructs;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.PinnedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Ranks of one process that put to each other over peer memory, spread over the GPUs there are: a
 * cell of slots for each rank, a flag for each slot, and a source of the size of a cell.
 */
final class PutRanks implements AutoCloseable {
    private static final int WARP = 32;

    private final int numRanks;
    private final long cellBytes;
    private final long flagsBytes;
    private final Duration timeout;
    private final Arena arena = Arena.ofShared();
    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final List<CudaContext> contexts = new ArrayList<>();
    private final List<CudaStream> streams = new ArrayList<>();
    private final List<CudaMemory> memories = new ArrayList<>();
    private final List<CudaMemory> peerTables = new ArrayList<>();
    private final List<List<BenchModule>> modules = new ArrayList<>();
    private final PinnedMemory timeouts;
    private final CudaEvent begin;
    private final CudaEvent end;
    private long epoch = 1;

    /** The kernels. */
    enum Pattern {
        BANDWIDTH("put"),
        LATENCY("put_latency"),
        SPARSE("put_sparse");

        private final String kernel;

        Pattern(String kernel) {
            this.kernel = kernel;
        }
    }

    /**
     * One launch on every rank that takes part.
     *
     * @param ranks the first so many take part
     * @param blocks of each
     * @param warps of a block
     * @param rows messages, of a warp or to a peer
     * @param rowBytes of a message
     * @param returnBytes of an answer
     * @param slotBytes of a slot
     */
    record Load(
            Pattern pattern,
            int ranks,
            int blocks,
            int warps,
            int rows,
            long rowBytes,
            long returnBytes,
            long slotBytes) {}

    /** Allocates; {@code slots} flags for {@code cellBytes} of slots. */
    PutRanks(int numRanks, long cellBytes, int slots, Duration timeout) {
        this.numRanks = numRanks;
        this.cellBytes = cellBytes;
        this.flagsBytes = (long) Long.BYTES * slots;
        this.timeout = timeout;
        for (int rank = 0; rank < numRanks; rank++) {
            CudaDevice device = CudaDevice.of(rank % CudaDriver.numDevices());
            CudaContext context = keep(CudaContext.retain(device));
            contexts.add(context);
            streams.add(keep(CudaStream.create(context)));
            CudaMemory memory =
                    keep(
                            CudaMemory.allocate(
                                    context, numRanks * (cellBytes + flagsBytes) + cellBytes));
            memory.clear();
            memories.add(memory);
        }
        for (int rank = 0; rank < numRanks; rank++) {
            open(rank);
        }
        timeouts = keep(PinnedMemory.allocate(contexts.getFirst(), Long.BYTES));
        begin = keep(CudaEvent.createTiming(contexts.getFirst()));
        end = keep(CudaEvent.createTiming(contexts.getFirst()));
        contexts.forEach(CudaContext::synchronize);
    }

    private void open(int rank) {
        CudaContext context = contexts.get(rank);
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment table = confined.allocate(JAVA_LONG, numRanks);
            for (int peer = 0; peer < numRanks; peer++) {
                if (!contexts.get(peer).cudaDevice().equals(context.cudaDevice())) {
                    PeerAccess.enable(context, contexts.get(peer));
                }
                table.setAtIndex(JAVA_LONG, peer, memories.get(peer).address());
            }
            CudaMemory peers = keep(CudaMemory.allocate(context, table.byteSize()));
            peers.copyFrom(0, table);
            peerTables.add(peers);
        }
        streams.get(rank).fillInts(source(rank), rank + 1, cellBytes / Integer.BYTES);
        List<BenchModule> loaded = new ArrayList<>();
        for (Pattern pattern : Pattern.values()) {
            loaded.add(keep(BenchModule.load(context, pattern.kernel)));
        }
        modules.add(loaded);
    }

    private <T extends AutoCloseable> T keep(T resource) {
        resources.push(resource);
        return resource;
    }

    /** After the cells and the flags. */
    private long source(int rank) {
        return memories.get(rank).address() + numRanks * (cellBytes + flagsBytes);
    }

    CudaContext context() {
        return contexts.getFirst();
    }

    /**
     * Microseconds that rank 0 takes.
     *
     * @throws IllegalStateException if a rank waited in vain
     */
    double micros(Load load) {
        LaunchConfig launch = new LaunchConfig(arena, load.blocks(), WARP * load.warps());
        for (int rank = load.ranks() - 1; rank >= 0; rank--) {
            CudaStream stream = streams.get(rank);
            if (rank == 0) {
                stream.record(begin);
            }
            modules.get(rank)
                    .get(load.pattern().ordinal())
                    .function()
                    .launch(launch, params(load, rank).memory(), stream);
            if (rank == 0) {
                stream.record(end);
            }
        }
        streams.forEach(CudaStream::synchronize);
        epoch += load.rows();
        if (timeouts.segment().get(JAVA_LONG, 0) != 0) {
            throw new IllegalStateException(
                    "puts of " + load.rowBytes() + " bytes did not arrive within " + timeout);
        }
        return end.elapsedMicros(begin);
    }

    private Params params(Load load, int rank) {
        Params params = BenchStructs.PUT.allocate(arena);
        long network = BenchStructs.PUT.offset("network");
        params.memory()
                .setLong(
                        network + NetworkStructs.NETWORK.offset("base"),
                        memories.get(rank).address())
                .setLong(
                        network + NetworkStructs.NETWORK.offset("peers"),
                        peerTables.get(rank).address())
                .setInt(network + NetworkStructs.NETWORK.offset("node"), rank)
                .setInt(network + NetworkStructs.NETWORK.offset("num_nodes"), load.ranks());
        cells(params, "slots", 0, cellBytes);
        cells(params, "flags", numRanks * cellBytes, flagsBytes);
        return params.set("source", source(rank))
                .set("slot_bytes", load.slotBytes())
                .set("row_bytes", load.rowBytes())
                .set("return_bytes", load.returnBytes())
                .set("epoch", epoch)
                .set("timeout_ns", timeout.toNanos())
                .set("num_timeouts", timeouts.deviceAddress())
                .setInt("peer", rank == 0 ? 1 : 0)
                .setInt("num_rows", load.rows());
    }

    private static void cells(Params params, String field, long offset, long stride) {
        long at = BenchStructs.PUT.offset(field);
        params.memory()
                .setLong(at + NetworkStructs.CELLS.offset("offset"), offset)
                .setLong(at + NetworkStructs.CELLS.offset("stride"), stride);
    }

    /**
     * Requires that a message of rank 0 lies at rank 1, to its last byte.
     *
     * @throws IllegalStateException if it does not
     */
    void requireArrived(long slotOffset, long numBytes) {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment row = confined.allocate(numBytes, Long.BYTES);
            memories.get(1).copyTo(slotOffset, row);
            for (long at = 0; at < numBytes; at += Long.BYTES) {
                if (row.get(JAVA_LONG, at) != 0x1_0000_0001L) {
                    throw new IllegalStateException(
                            "byte " + at + " of a put of " + numBytes + " bytes did not arrive");
                }
            }
            memories.get(1).clear();
            streams.get(1).fillInts(source(1), 2, cellBytes / Integer.BYTES);
            contexts.get(1).synchronize();
        }
    }

    @Override
    public void close() {
        contexts.forEach(CudaContext::synchronize);
        while (!resources.isEmpty()) {
            try {
                resources.pop().close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
        arena.close();
    }
}
