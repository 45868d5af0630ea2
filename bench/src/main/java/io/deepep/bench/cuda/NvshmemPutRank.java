package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.buffer.memory.NvshmemHeap;
import io.deepep.buffer.memory.NvshmemQueues;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;

/**
 * The rank of this process, which puts to those of others through NVSHMEM: cells and flags, the
 * outbox and the source in its symmetric heap.
 */
final class NvshmemPutRank implements PutRanks {
    private static final String KERNELS = "nvshmem/bench_put_nvshmem.fatbin";
    private static final String CURE =
            "build with NVSHMEM_HOME set to a folder that has lib/libnvshmem_device.a and"
                    + " include/nvshmem.h";

    /** Room for what a block posts before its first completions are there. */
    private static final int QP_DEPTH = 4096;

    private static final long MIN_BYTES = 16;

    private final PutMemory layout;
    private final Communicator communicator;
    private final Duration timeout;
    private final Arena arena = Arena.ofShared();
    private final CudaContext context;
    private final CudaStream stream;
    private final NvshmemHeap heap;
    private final Map<Pattern, CudaFunction> kernels = new EnumMap<>(Pattern.class);
    private final PinnedMemory timeouts;
    private final CudaEvent begin;
    private final CudaEvent end;
    private long epoch = 1;

    /**
     * Starts NVSHMEM: collective.
     *
     * @param sms blocks that send
     * @throws DeepEpUnavailableException on every rank, if something is missing on one
     */
    NvshmemPutRank(
            PutMemory layout,
            Communicator communicator,
            Network.Nvshmem network,
            int sms,
            Duration timeout) {
        this.layout = layout;
        this.communicator = communicator;
        this.timeout = timeout;
        CudaDevice device = CudaDevice.of(communicator.localRank() % CudaDriver.numDevices());
        context = CudaContext.shared(device);
        stream = CudaStream.create(context);
        heap =
                NvshmemHeap.open(
                        new HeapRanks(
                                communicator,
                                new EpTopology(communicator.rank(), communicator.size(), 1),
                                timeout),
                        context,
                        network,
                        new NvshmemQueues(sms, QP_DEPTH),
                        2 * layout.numBytes() + layout.cellBytes());
        timeouts = PinnedMemory.allocate(context, Long.BYTES);
        begin = CudaEvent.createTiming(context);
        end = CudaEvent.createTiming(context);
        together("load kernels", this::load);
        together("clear memory", this::clear);
    }

    private void load() {
        if (NvshmemPutRank.class.getResource(KERNELS) == null) {
            throw new DeepEpUnavailableException("this build has no kernels over NVSHMEM", CURE);
        }
        CudaModule module = heap.library().load(KERNELS, NvshmemPutRank.class.getResource(KERNELS));
        BenchStructs.HEADER.requireSame(module);
        for (Pattern pattern : Pattern.values()) {
            kernels.put(pattern, module.function("deepep_bench_" + pattern.kernel()));
            launch(small(pattern, 0));
        }
        stream.synchronize();
    }

    /**
     * The least that a pattern can be. A first launch may wait for all kernels of the GPU, so there
     * is one without messages before any kernel waits for another rank.
     */
    private Load small(Pattern pattern, int rows) {
        return new Load(pattern, layout.numRanks(), 1, 1, rows, MIN_BYTES, MIN_BYTES, MIN_BYTES);
    }

    private void clear() {
        stream.fillBytes(heap.address(), (byte) 0, layout.numBytes());
        layout.fillSource(stream, source(), communicator.rank());
        stream.synchronize();
    }

    /** What fails on one rank fails on all. */
    private void together(String what, Runnable part) {
        new Meeting(
                        communicator,
                        timeout,
                        "bench put cannot " + what,
                        "check the machine with deepep doctor")
                .step(part);
    }

    /** After cells and flags, and their like in the outbox. */
    private long source() {
        return heap.address() + 2 * layout.numBytes();
    }

    @Override
    public CudaContext context() {
        return context;
    }

    @Override
    public int numGpus() {
        int hosts = Math.ceilDiv(communicator.size(), communicator.localSize());
        return hosts * Math.min(communicator.localSize(), CudaDriver.numDevices());
    }

    /**
     * Ranks start together on their GPUs: a small exchange of all of them comes before the load.
     * Rank 0 has enqueued everything before another rank can answer.
     */
    @Override
    public double micros(Load load) {
        boolean first = communicator.rank() == 0;
        if (!first) {
            communicator.barrier(timeout);
        }
        launch(small(Pattern.SPARSE, 1));
        if (first) {
            stream.record(begin);
        }
        epoch++;
        if (communicator.rank() < load.ranks()) {
            launch(load);
        }
        epoch += load.rows();
        if (first) {
            stream.record(end);
            communicator.barrier(timeout);
        }
        stream.synchronize();
        boolean lost = timeouts.segment().get(JAVA_LONG, 0) != 0;
        byte[] own = {(byte) (lost ? 1 : 0)};
        if (communicator.allGather(own, timeout.multipliedBy(3)).stream()
                .anyMatch(m -> m[0] != 0)) {
            throw load.lost(timeout);
        }
        return first ? end.elapsedMicros(begin) : 0;
    }

    private void launch(Load load) {
        Params params = layout.params(arena, load, communicator.rank(), heap.address());
        int firstPe = heap.library().peOf(0);
        PutMemory.network(params)
                .set("outbox", layout.numBytes())
                .setInt("first_pe", firstPe)
                .setInt("pe_stride", heap.library().peOf(1) - firstPe);
        params.set("source", source())
                .set("epoch", epoch)
                .set("timeout_ns", timeout.toNanos())
                .set("num_timeouts", timeouts.deviceAddress());
        kernels.get(load.pattern()).launch(load.launch(arena), params.memory(), stream);
    }

    @Override
    public void requireArrived(long slotOffset, long numBytes) {
        together(
                "go on",
                () -> {
                    if (communicator.rank() == 1) {
                        requireHere(slotOffset, numBytes);
                    }
                });
    }

    private void requireHere(long slotOffset, long numBytes) {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment row = confined.allocate(numBytes, Long.BYTES);
            stream.copy(row.address(), heap.address() + slotOffset, numBytes);
            stream.synchronize();
            PutMemory.requireFromRank0(row);
            stream.fillBytes(heap.address(), (byte) 0, layout.numRanks() * layout.cellBytes());
            stream.synchronize();
        }
    }

    @Override
    public void close() {
        stream.synchronize();
        heap.close();
        begin.close();
        end.close();
        timeouts.close();
        stream.close();
        arena.close();
    }
}
