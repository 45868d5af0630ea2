package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.buffer.memory.CudaHeaps;
import io.deepep.buffer.memory.GpuSharing;
import io.deepep.buffer.memory.NetworkChoice;
import io.deepep.buffer.memory.RdmaBuffer;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.lowlatency.cuda.CudaLowLatencyKernels;
import io.deepep.lowlatency.cuda.LowLatencyGpu;
import io.deepep.lowlatency.cuda.LowLatencyPlace;
import io.deepep.normal.NormalKernels;
import io.deepep.normal.cuda.CudaNormalKernels;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import io.deepep.spi.Undo;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The CUDA backend of one rank. Operations are enqueued on the communication stream; a synchronous
 * call without a compute stream waits on the host, with one the compute stream waits.
 *
 * <p>What may wait for other kernels of the GPU (making streams, loading kernels) is done while the
 * buffer opens, between two meetings of all ranks. Later calls do nothing of the kind, so that a
 * rank never waits for a kernel that waits for it.
 */
final class CudaResources implements Resources {
    private final BufferOptions options;
    private final CudaContext context;
    private final GpuSharing sharing;
    private final CudaStream stream;

    /** Null where a mode that is not used would need it. */
    private final CudaHeaps nvl;

    private final RdmaBuffer rdma;
    private final KnownDepartures departures;
    private GoneRanks gone;
    private CudaNormalKernels normal;
    private CudaLowLatencyKernels lowLatency;

    private final OwnMemory ownMemory;
    private final DeviceTimer timer;

    private final StreamOrder order;

    /** What {@link #close} gives back. */
    private final Undo made;

    private CudaResources(BufferOptions options, BufferSizes sizes, HeapRanks ranks, Undo made) {
        this.options = options;
        this.made = made;
        context = CudaContext.shared(CudaDevice.of(options.device().index()));
        // Those of both modes, whichever this buffer uses: when another buffer opens here later, a
        // kernel of this group may be waiting, and loading would wait for it.
        CudaNormalKernels.load(context);
        LowLatencyGpu.load(context);
        stream = made.made(openStream(options), CudaStream::close);
        sharing = agreeOnSharing(ranks);
        if (!ranks.allNew()) {
            sharing.requireKept(sharing, ranks);
        }
        order = new StreamOrder(stream);
        timer = new DeviceTimer(context, stream);
        nvl = options.numNvlBytes() == 0 ? null : made.made(openNvl(ranks), CudaHeaps::close);
        rdma =
                options.numRdmaBytes() == 0
                        ? null
                        : made.made(
                                RdmaBuffer.open(options, sizes, context, stream, sharing, ranks),
                                RdmaBuffer::close);
        ownMemory =
                new OwnMemory(
                        context.device(),
                        nvl == null
                                ? MemoryRange.NONE
                                : MemoryRange.at(nvl.localAddress(), options.numNvlBytes()),
                        rdma == null
                                ? MemoryRange.NONE
                                : MemoryRange.at(rdma.localAddress(), options.numRdmaBytes()));
        departures = new KnownDepartures(options.communicator());
    }

    private void openModes(BufferSizes sizes) {
        gone = made.made(new GoneRanks(context, departures), GoneRanks::close);
        normal =
                options.normal() == null ? null : made.made(openNormal(), CudaNormalKernels::close);
        if (normal != null) {
            departures.leaveOut(rank -> normal.queryMask()[rank] != 0);
        }
        lowLatency =
                options.lowLatency() == null
                        ? null
                        : made.made(openLowLatency(sizes), CudaLowLatencyKernels::close);
    }

    private CudaHeaps openNvl(HeapRanks ranks) {
        return CudaHeaps.open(ranks, context, options.numNvlBytes(), CudaHeaps.Reach.NODE);
    }

    private GpuSharing agreeOnSharing(HeapRanks ranks) {
        return GpuSharing.agree(
                ranks.communicator(), options, context.cudaDevice(), stream.numSms());
    }

    /** The engine's stream as an object of our own: closing that tells late readers of events. */
    private CudaStream openStream(BufferOptions options) {
        return options.communicationStream() instanceof CudaStream given
                ? CudaStream.wrap(context, given.handle())
                : CudaStream.create(context, context.greatestStreamPriority());
    }

    /** Allocates and meets the peers: collective. */
    static CudaResources open(BufferOptions options, BufferSizes sizes, HeapRanks ranks) {
        Undo made = new Undo();
        try {
            CudaResources resources = new CudaResources(options, sizes, ranks, made);
            meeting(ranks).step(() -> resources.openModes(sizes));
            return resources;
        } catch (RuntimeException | Error failure) {
            made.close(failure);
            if (failure instanceof DeepEpUnavailableException
                    && failure.getCause() instanceof IllegalArgumentException refused) {
                throw refused; // options, which are the same on all ranks
            }
            throw failure;
        }
    }

    /**
     * The last of opening. Nobody launches before everybody's memory is zeroed and kernels are
     * loaded: loading can wait for a kernel that waits for it. And nobody gives back memory because
     * of a failure before the others, who have it open, learn of that.
     */
    private static Meeting meeting(HeapRanks ranks) {
        return new Meeting(
                ranks.communicator(),
                ranks.timeout(),
                "the buffer cannot be opened",
                "free memory of the GPU, or lower the limits of the buffer");
    }

    @Override
    public void requireReplaceable() {
        boolean crosses = options.topology().isInternode();
        if (rdma != null && crosses && !NetworkChoice.outlivesRanks(options.network())) {
            throw new UnsupportedOperationException(
                    "new ranks cannot be admitted if NVSHMEM connects the nodes; close the buffer, and"
                            + " open one in the new group");
        }
        boolean fixed = nvl != null && !nvl.canAdmit();
        if (fixed || (rdma != null && !rdma.mapped().get().canAdmit())) {
            throw new UnsupportedOperationException(
                    "new ranks cannot be admitted if processes share GPU memory through CUDA IPC,"
                            + " because the driver chooses its addresses; close the buffer, and"
                            + " open one in the new group");
        }
    }

    @Override
    public void admit(HeapRanks ranks) {
        agreeOnSharing(ranks).requireKept(sharing, ranks);
        if (nvl != null) {
            nvl.admit(ranks);
        }
        if (rdma != null) {
            rdma.admit(ranks);
        }
        meeting(ranks).step(() -> {});
    }

    @Override
    public void moveTo(Communicator group) {
        departures.moveTo(group);
        gone.follow();
    }

    private CudaNormalKernels openNormal() {
        return new CudaNormalKernels(
                new CudaNormalKernels.RankSetup(
                        context,
                        stream,
                        options.topology(),
                        nvl.addresses(),
                        options.topology().isInternode() ? rdma.heaps() : RdmaHeaps.NONE,
                        options.communicator().isInProcess(),
                        sharing.share(),
                        gone.deviceAddress(),
                        options.maskTimedOutRanks(),
                        options.timeouts()),
                options.normal(),
                options.dispatchConfig(),
                options.combineConfig(),
                options.defaults());
    }

    /** Ranks of other nodes are reached by a network alone, whatever is mapped here. */
    private CudaLowLatencyKernels openLowLatency(BufferSizes sizes) {
        EpTopology topology = options.topology();
        RdmaHeaps heaps = rdma.heaps().from(sizes.normalRdmaBytes());
        long outbox = rdma.outbox() - sizes.normalRdmaBytes();
        LowLatencyPlace.Network network =
                rdma.queues() != null
                        ? new LowLatencyPlace.Queues(rdma.queues().lowLatency(), outbox)
                        : heaps.library()
                                .map(library -> new LowLatencyPlace.Library(library, outbox))
                                .orElse(null);
        CudaHeaps.Reach reach = network == null ? CudaHeaps.Reach.GROUP : CudaHeaps.Reach.NODE;
        List<Long> reached =
                IntStream.range(0, topology.numRanks())
                        .mapToObj(
                                peer ->
                                        reach.includes(topology, peer)
                                                ? heaps.addresses().get(peer)
                                                : Long.valueOf(0))
                        .toList();
        return new CudaLowLatencyKernels(
                new LowLatencyPlace(
                        context,
                        stream,
                        topology,
                        reached,
                        network,
                        sharing.share(),
                        gone.deviceAddress(),
                        options.timeouts()),
                options.lowLatency(),
                options.maskTimedOutRanks());
    }

    @Override
    public void requireNoCapture() {
        boolean capturing = false;
        try {
            capturing = stream.isCapturing();
        } catch (NativeCallException failed) {
            // The GPU has failed, and captures nothing.
        }
        if (capturing) {
            throw new IllegalStateException(
                    "the communication stream is being captured, and cannot be waited for; end the"
                            + " capture first");
        }
    }

    @Override
    public void becomeIdle() {
        requireNoCapture();
        stream.synchronize();
        stream.synchronizeReplays(); // an engine may have launched them on its own stream
    }

    @Override
    public NormalKernels normal() {
        return normal;
    }

    @Override
    public KnownDepartures departures() {
        return departures;
    }

    @Override
    public Optional<NativeCallException> networkFailure() {
        if (rdma == null || rdma.queues() == null) {
            return Optional.empty();
        }
        // That those who have been left out are not reached any more is no news.
        int[] masked = normal == null ? lowLatency.queryMask() : normal.queryMask();
        return rdma.queues().ibgda().failure(rank -> masked[rank] == 0);
    }

    @Override
    public void mendNetwork() {
        if (rdma != null && rdma.queues() != null) {
            rdma.queues().ibgda().mend(departures.communicator());
        }
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        // Where normal mode cannot leave a rank out, low-latency mode still can.
        if (normal != null && (normal.canMask() || lowLatency == null)) {
            normal.updateMask(rank, masked);
            gone.update();
        }
        if (lowLatency != null) {
            lowLatency.updateMask(rank, masked);
        }
    }

    @Override
    public LowLatencyKernels lowLatency() {
        return lowLatency;
    }

    @Override
    public Stream communicationStream() {
        return stream;
    }

    @Override
    public <R> R run(PreparedOperation<R> operation, CallOptions options) {
        CudaOperation<R> cuda = (CudaOperation<R>) operation.operation;
        order.start(options);
        if (stream.isCapturing()) {
            requireValidCapture();
            requireCapturable(cuda, options);
        }
        operation.options = options;
        boolean inOrder = order.isOwnStream(options.computeStream());
        cuda.endsWithStream(inOrder && !options.asyncFinish());
        operation.beginWork.run();
        if (!options.asyncFinish() && !inOrder) {
            if (options.computeStream() != null) {
                operation.hold(options.computeStream());
            } else {
                operation.completeWork.run();
            }
        }
        return operation.result(operation.event);
    }

    /** Where nothing could be enqueued, ranks are still in step. */
    private void requireValidCapture() {
        if (stream.capture() == 0) {
            throw new IllegalStateException(
                    "an error within the capture has made it invalid; end it, and"
                            + " capture again or call without a graph");
        }
    }

    private static void requireCapturable(CudaOperation<?> operation, CallOptions options) {
        if (!operation.isCapturable()) {
            throw new IllegalStateException(
                    "a dispatch with exact counts waits for them on the CPU and cannot go into a"
                            + " graph; give numWorstTokens or a handle");
        }
        if (!options.asyncFinish() && options.computeStream() == null) {
            throw new IllegalStateException(
                    "a synchronous call without a compute stream waits on the CPU and cannot go"
                            + " into a graph; use CallOptions.async() or on(stream)");
        }
    }

    /** Preparing allocates, and zeroes what is to be zero once and not at every replay. */
    @Override
    public void requirePreparable(CallOptions options) {
        boolean capturing =
                options.computeStream() instanceof CudaStream compute && compute.isCapturing();
        if (capturing || stream.isCapturing()) {
            throw new IllegalStateException(
                    "the first call of a plan allocates and cannot go into a graph; make the call"
                            + " once before the capture");
        }
    }

    /** The host waits, or the stream that the call was made on, as it did for the first half. */
    @Override
    public void receive(PreparedOperation<?> operation) {
        Stream compute = operation.options.computeStream();
        if (compute != null) {
            order.joinCompute(compute);
        }
        operation.receive();
        if (compute != null) {
            if (!order.isOwnStream(compute)) {
                operation.hold(compute);
            }
            operation.observed.leave();
        } else if (!stream.isCapturing()) {
            operation.completeWork.run();
        }
    }

    @Override
    public void await(CallOptions options) {
        requirePreparable(options);
        order.start(options);
    }

    @Override
    public boolean isCapturing() {
        return stream.isCapturing();
    }

    @Override
    public DeviceTimer timer() {
        return timer;
    }

    @Override
    public OwnMemory ownMemory() {
        return ownMemory;
    }

    @Override
    public Tensor localTensor(DType dtype, long numElements, long offset, boolean inRdma) {
        MemoryRange memory = inRdma ? ownMemory.rdma() : ownMemory.nvl();
        return Tensor.onDevice(
                context.device(),
                memory.start() + offset,
                Math.multiplyExact(numElements, dtype.sizeBytes()),
                dtype,
                new long[] {numElements},
                new long[] {1});
    }

    @Override
    public void close() {
        try (made) {
            becomeIdle();
        }
    }
}
