package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.bench.cuda.PutLoad.Pattern;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Undo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;

/** One rank that puts to the others. Its methods are collective, each rank on a thread. */
final class PutRank implements AutoCloseable {
    private final PutMemory layout;
    private final Communicator communicator;
    private final Duration timeout;
    private final Undo undo = new Undo();
    private final Arena arena = undo.made(Arena.ofShared(), Arena::close);
    private final CudaStream stream;
    private final PutHeap heap;
    private final Map<Pattern, CudaFunction> kernels = new EnumMap<>(Pattern.class);
    private final PinnedMemory timeouts;
    private final CudaEvent begin;
    private final CudaEvent end;
    private long epoch = 1;

    /**
     * Allocates memory and meets the others.
     *
     * @param sms blocks that send
     */
    PutRank(
            PutMemory layout,
            Communicator communicator,
            CudaDevice gpu,
            Network network,
            int sms,
            Duration timeout) {
        this.layout = layout;
        this.communicator = communicator;
        this.timeout = timeout;
        try {
            CudaContext context = CudaContext.shared(gpu);
            stream = undo.made(CudaStream.create(context), CudaStream::close);
            EpTopology topology = new EpTopology(communicator.rank(), communicator.size(), 1);
            HeapRanks ranks = new HeapRanks(communicator, topology, timeout);
            heap = undo.made(PutHeap.open(network, ranks, stream, sms, layout), PutHeap::close);
            timeouts = undo.made(PinnedMemory.allocate(context, Long.BYTES), PinnedMemory::close);
            begin = undo.made(CudaEvent.createTiming(context), CudaEvent::close);
            end = undo.made(CudaEvent.createTiming(context), CudaEvent::close);
            load();
            clear();
        } catch (RuntimeException | Error failure) {
            undo.close(failure);
            throw failure;
        }
    }

    /**
     * A first launch may wait for all kernels of the GPU, so there is one without messages before
     * any kernel waits for another rank.
     */
    private void load() {
        for (Pattern pattern : Pattern.values()) {
            kernels.put(pattern, heap.load(pattern));
            launch(PutLoad.small(pattern, layout.numRanks(), 0));
        }
    }

    private void clear() {
        stream.fillBytes(heap.address(), (byte) 0, layout.numBytes());
        layout.fillSource(stream, heap.source(), communicator.rank());
        stream.synchronize();
    }

    /**
     * Microseconds that rank 0 takes; something else on other ranks. Ranks start together on their
     * GPUs: a small exchange of all of them comes before the load. Rank 0 has enqueued everything
     * before another rank can answer.
     *
     * @throws IllegalStateException if puts did not arrive in time
     */
    double micros(PutLoad load) {
        boolean first = communicator.rank() == 0;
        if (!first) {
            communicator.barrier(timeout);
        }
        launch(PutLoad.small(Pattern.SPARSE, layout.numRanks(), 1));
        stream.record(begin);
        epoch++;
        if (communicator.rank() < load.ranks()) {
            launch(load);
        }
        epoch += load.rows();
        stream.record(end);
        if (first) {
            communicator.barrier(timeout);
        }
        stream.synchronize();
        if (timeouts.segment().get(JAVA_LONG, 0) != 0) {
            throw new IllegalStateException(
                    "puts of %s bytes did not arrive within %s seconds"
                            .formatted(load.rowBytes(), timeout.toSeconds()));
        }
        return end.elapsedMicros(begin);
    }

    private void launch(PutLoad load) {
        Params params = layout.params(arena, load, communicator.rank(), heap.address());
        heap.setNetwork(PutMemory.network(params));
        params.set("source", heap.source())
                .set("epoch", epoch)
                .set("timeout_ns", timeout.toNanos())
                .set("num_timeouts", timeouts.deviceAddress());
        kernels.get(load.pattern()).launch(load.launch(arena), params.memory(), stream);
    }

    /**
     * Requires that a message of rank 0 lies here, to its last byte, and clears the slots.
     *
     * @throws IllegalStateException if it does not
     */
    void requireHere(long slotOffset, long numBytes) {
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
        undo.close();
    }
}
