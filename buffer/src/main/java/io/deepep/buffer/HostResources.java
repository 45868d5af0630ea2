package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.HostHeaps;
import io.deepep.host.HostStream;
import io.deepep.host.HostWait;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.lowlatency.host.HostLowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.normal.host.HostNormalKernels;
import io.deepep.spi.HeapRanks;
import java.lang.foreign.MemorySegment;

/**
 * The host backend of one rank. Synchronous calls run on the calling thread, asynchronous ones on
 * the communication stream's.
 */
final class HostResources implements Resources {
    private final BufferOptions options;
    private final HostHeaps heaps;
    private final HostWait waiter;
    private final KnownDepartures departures;
    private final HostStream stream;
    private final boolean ownsStream;
    private final NormalKernels normal;
    private final LowLatencyKernels lowLatency;

    private HostResources(BufferOptions options, BufferSizes sizes, HostHeaps heaps) {
        this.options = options;
        this.heaps = heaps;
        EpTopology topology = options.topology();
        departures = new KnownDepartures(options.communicator());
        waiter =
                new HostWait(
                        topology.rank(), heaps.doorbell(), options.timeouts(), departures::list);
        ownsStream = options.communicationStream() == null;
        stream =
                ownsStream
                        ? new HostStream("deepep-comm-" + topology.rank())
                        : (HostStream) options.communicationStream();
        if (ownsStream) {
            heaps.whenUnreachable(stream::close); // its thread, if nobody closes the buffer
        }
        HostHeap normalRdma = heaps.rdma().window(0, sizes.normalRdmaBytes());
        normal =
                options.normal() == null
                        ? null
                        : new HostNormalKernels(
                                new HostContext(topology, heaps.nvl(), normalRdma, waiter),
                                options.normal(),
                                options.dispatchConfig(),
                                options.combineConfig(),
                                options.maskTimedOutRanks());
        if (normal != null) {
            departures.leaveOut(rank -> normal.queryMask()[rank] != 0);
        }
        HostHeap lowLatencyRdma =
                heaps.rdma().window(sizes.normalRdmaBytes(), sizes.lowLatencyRdmaBytes());
        lowLatency =
                options.lowLatency() == null
                        ? null
                        : new HostLowLatencyKernels(
                                new HostContext(topology, null, lowLatencyRdma, waiter),
                                options.lowLatency(),
                                options.maskTimedOutRanks());
    }

    /** Allocates and meets the peers: collective. */
    static HostResources open(BufferOptions options, BufferSizes sizes, HeapRanks ranks) {
        HostHeaps heaps = HostHeaps.open(ranks, options.numNvlBytes(), options.numRdmaBytes());
        try {
            return new HostResources(options, sizes, heaps);
        } catch (RuntimeException | Error failure) {
            heaps.close();
            throw failure;
        }
    }

    @Override
    public KnownDepartures departures() {
        return departures;
    }

    @Override
    public void admit(HeapRanks ranks) {
        heaps.admit(ranks);
    }

    @Override
    public void moveTo(Communicator group) {
        departures.moveTo(group);
        waiter.askAgain();
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        if (normal != null) {
            normal.updateMask(rank, masked);
        }
        if (lowLatency != null) {
            lowLatency.updateMask(rank, masked);
        }
    }

    @Override
    public NormalKernels normal() {
        return normal;
    }

    @Override
    public LowLatencyKernels lowLatency() {
        return lowLatency;
    }

    @Override
    public boolean isInCall() {
        return stream.isRunning();
    }

    @Override
    public void becomeIdle() {
        stream.synchronize();
    }

    @Override
    public Stream communicationStream() {
        return stream;
    }

    @Override
    public <R> R run(PreparedOperation<R> operation, CallOptions options) {
        if (options.asyncFinish()) {
            return runAsync(operation, options);
        }
        startAfter(options);
        stream.runInline(operation.hooked ? operation.beginWork : operation.wholeWork);
        return operation.result(Event.completed());
    }

    private <R> R runAsync(PreparedOperation<R> operation, CallOptions options) {
        operation.memory.requireShareable();
        startAfter(options);
        if (operation.fixedShape) {
            return operation.result(operation.submitWhole(stream));
        }
        Event begun = operation.submitBegin(stream);
        try {
            begun.synchronize();
            return operation.result(operation.hooked ? begun : operation.submitComplete(stream));
        } catch (IllegalStateException failure) {
            if (failure.getCause() instanceof InterruptedException) {
                operation.owner.fail(failure); // the second half will not run
            }
            throw failure;
        }
    }

    @Override
    public void receive(PreparedOperation<?> operation) {
        stream.runInline(operation.completeWork);
    }

    @Override
    public void await(CallOptions options) {
        if (startAfter(options)) {
            stream.synchronize();
        }
    }

    /**
     * Makes the stream wait for what a call comes after, if that is still to come. Whether it
     * succeeds is no matter of this call, which the other ranks make in any case.
     *
     * @return whether the stream has to wait
     */
    private boolean startAfter(CallOptions options) {
        Event start = startOf(options);
        if (start.isDone()) {
            return false;
        }
        stream.waitFor(start);
        return true;
    }

    /**
     * What an operation comes after: the previous event, else all work of the compute stream, else
     * what the calling thread has done.
     */
    private static Event startOf(CallOptions options) {
        if (options.previousEvent() != null) {
            return options.previousEvent();
        }
        return options.computeStream() != null
                ? options.computeStream().record()
                : Event.completed();
    }

    @Override
    public long[] waits() {
        long[] waits = new long[options.topology().numRanks()];
        waiter.copyWaited(waits);
        return waits;
    }

    @Override
    public OwnMemory ownMemory() {
        return new OwnMemory(
                Device.host(), rangeOf(heaps.nvl().local()), rangeOf(heaps.rdma().local()));
    }

    private static MemoryRange rangeOf(MemorySegment memory) {
        return MemoryRange.at(memory.address(), memory.byteSize());
    }

    @Override
    public Tensor localTensor(DType dtype, long numElements, long offset, boolean rdma) {
        MemorySegment memory = rdma ? heaps.rdma().local() : heaps.nvl().local();
        long numBytes = Math.multiplyExact(numElements, dtype.sizeBytes());
        return Tensor.of(memory.asSlice(offset, numBytes), dtype, numElements);
    }

    @Override
    public void close() {
        try (heaps) {
            endWork();
        }
    }

    /** Regardless of interrupts, because a call in flight uses the memory that goes next. */
    private void endWork() {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (ownsStream) {
                        stream.close();
                    } else {
                        stream.synchronize();
                    }
                    return;
                } catch (IllegalStateException ended) {
                    if (!Thread.interrupted()) {
                        throw ended;
                    }
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
