package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.spi.Undo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Ranks of one process that put to each other over peer memory, spread over the GPUs there are: a
 * cell of slots for each rank, a flag for each slot, and a source of the size of a cell.
 */
final class PeerPutRanks implements PutRanks {
    private final PutMemory layout;
    private final int numRanks;
    private final Duration timeout;
    private final Undo undo = new Undo();
    private final Arena arena = undo.made(Arena.ofShared(), Arena::close);
    private final List<CudaContext> contexts = new ArrayList<>();
    private final List<CudaStream> streams = new ArrayList<>();
    private final List<CudaMemory> memories = new ArrayList<>();
    private final List<CudaMemory> peerTables = new ArrayList<>();
    private final List<Map<Pattern, BenchModule>> modules = new ArrayList<>();
    private final PinnedMemory timeouts;
    private final CudaEvent begin;
    private final CudaEvent end;
    private long epoch = 1;

    PeerPutRanks(PutMemory layout, Duration timeout) {
        this.layout = layout;
        this.numRanks = layout.numRanks();
        this.timeout = timeout;
        for (int rank = 0; rank < numRanks; rank++) {
            CudaDevice device = CudaDevice.of(rank % CudaDriver.numDevices());
            CudaContext context = undo.made(CudaContext.retain(device), CudaContext::close);
            contexts.add(context);
            streams.add(undo.made(CudaStream.create(context), CudaStream::close));
            CudaMemory memory =
                    undo.made(
                            CudaMemory.allocate(context, layout.numBytes() + layout.cellBytes()),
                            CudaMemory::close);
            memory.clear();
            memories.add(memory);
        }
        for (int rank = 0; rank < numRanks; rank++) {
            open(rank);
        }
        timeouts =
                undo.made(
                        PinnedMemory.allocate(contexts.getFirst(), Long.BYTES),
                        PinnedMemory::close);
        begin = undo.made(CudaEvent.createTiming(contexts.getFirst()), CudaEvent::close);
        end = undo.made(CudaEvent.createTiming(contexts.getFirst()), CudaEvent::close);
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
            CudaMemory peers =
                    undo.made(CudaMemory.allocate(context, table.byteSize()), CudaMemory::close);
            peers.copyFrom(0, table);
            peerTables.add(peers);
        }
        layout.fillSource(streams.get(rank), source(rank), rank);
        Map<Pattern, BenchModule> loaded = new EnumMap<>(Pattern.class);
        for (Pattern pattern : Pattern.values()) {
            loaded.put(
                    pattern,
                    undo.made(BenchModule.load(context, pattern.kernel()), BenchModule::close));
        }
        modules.add(loaded);
    }

    /** After the cells and the flags. */
    private long source(int rank) {
        return memories.get(rank).address() + layout.numBytes();
    }

    @Override
    public CudaContext context() {
        return contexts.getFirst();
    }

    @Override
    public int numGpus() {
        return Math.min(numRanks, CudaDriver.numDevices());
    }

    @Override
    public double micros(Load load) {
        LaunchConfig launch = load.launch(arena);
        for (int rank = load.ranks() - 1; rank >= 0; rank--) {
            CudaStream stream = streams.get(rank);
            if (rank == 0) {
                stream.record(begin);
            }
            modules.get(rank)
                    .get(load.pattern())
                    .function()
                    .launch(launch, params(load, rank).memory(), stream);
            if (rank == 0) {
                stream.record(end);
            }
        }
        streams.forEach(CudaStream::synchronize);
        epoch += load.rows();
        if (timeouts.segment().get(JAVA_LONG, 0) != 0) {
            throw load.lost(timeout);
        }
        return end.elapsedMicros(begin);
    }

    private Params params(Load load, int rank) {
        Params params = layout.params(arena, load, rank, memories.get(rank).address());
        PutMemory.network(params).set("peers", peerTables.get(rank).address());
        return params.set("source", source(rank))
                .set("epoch", epoch)
                .set("timeout_ns", timeout.toNanos())
                .set("num_timeouts", timeouts.deviceAddress());
    }

    @Override
    public void requireArrived(long slotOffset, long numBytes) {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment row = confined.allocate(numBytes, Long.BYTES);
            memories.get(1).copyTo(slotOffset, row);
            PutMemory.requireFromRank0(row);
            memories.get(1).clear();
            layout.fillSource(streams.get(1), source(1), 1);
            contexts.get(1).synchronize();
        }
    }

    @Override
    public void close() {
        contexts.forEach(CudaContext::synchronize);
        undo.close();
    }
}
