package io.deepep.lowlatency.cuda;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Operation;
import io.deepep.testkit.conformance.RequiredBackends;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/** Two nodes of two ranks on one GPU, which have each other's heaps mapped. */
final class MappedRanks implements AutoCloseable {
    static final int NUM_RANKS = 4;
    private static final int RANKS_PER_NODE = 2;

    private final LowLatencyLimits limits;
    private final CudaContext context = CudaContext.shared(CudaDevice.of(0));
    private final List<VirtualMemory> heaps = new ArrayList<>();
    private final List<CudaStream> streams = new ArrayList<>();
    private final List<DevicePool> pools = new ArrayList<>();
    private final List<CudaLowLatencyKernels> kernels = new ArrayList<>();
    private Duration lastsDelay = Duration.ZERO;

    /** Skips tests where there is no GPU, or no kernels for it. */
    static void requireCuda() {
        boolean built =
                MappedRanks.class.getResource(
                                "/io/deepep/lowlatency/lowlatency_internode_dispatch.fatbin")
                        != null;
        String missing = built ? null : "built without nvcc";
        RequiredBackends.assumeCuda(
                CudaDriver.unavailabilityReason().or(() -> Optional.ofNullable(missing)));
    }

    /** Opens all ranks. */
    MappedRanks(LowLatencyLimits limits, Duration timeout) {
        this.limits = limits;
        LowLatencyLayout layout = LowLatencyLayout.of(limits, topology(0));
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            VirtualMemory heap =
                    VirtualMemory.allocate(
                            context, layout.layout().sizeBytes(), VirtualMemory.Export.NONE);
            heap.clear();
            heaps.add(heap);
        }
        List<Long> addresses = heaps.stream().map(VirtualMemory::address).toList();
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            CudaStream stream = CudaStream.create(context);
            streams.add(stream);
            pools.add(new DevicePool(stream));
            LowLatencyPlace place =
                    new LowLatencyPlace(
                            context,
                            stream,
                            topology(rank),
                            addresses,
                            null,
                            new GpuShare(stream.numSms(), NUM_RANKS),
                            0,
                            new CallTimeouts(timeout, null));
            kernels.add(new CudaLowLatencyKernels(place, limits, false));
        }
    }

    private static EpTopology topology(int rank) {
        return new EpTopology(rank, NUM_RANKS, RANKS_PER_NODE);
    }

    LowLatencyLimits limits() {
        return limits;
    }

    /** The last rank begins its calls that much later than the others. */
    void delayTheLast(Duration delay) {
        lastsDelay = delay;
    }

    /** Makes all ranks believe that each kind of call has been made {@code numCalls} times. */
    void pretendCalls(long numCalls) {
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            CudaLowLatencyKernels state = kernels.get(rank);
            CudaStream stream = streams.get(rank);
            int last = CallEpoch.of(numCalls);
            int[] received = {last, last}; // by parity
            received[~last & 1] = CallEpoch.of(numCalls - 1);
            for (int kind = 0; kind < 2; kind++) {
                stream.writeInt(stateAddress(state, "epoch") + 4L * kind, last);
                for (int parity = 0; parity < 2; parity++) {
                    long idx = 2L * kind + parity;
                    stream.writeInt(stateAddress(state, "received") + 4 * idx, received[parity]);
                    for (int peer = 0; peer < NUM_RANKS; peer++) {
                        long ack = state.layout.acks().at(peer) + 4 * idx;
                        stream.writeInt(state.place.heap() + ack, received[parity]);
                    }
                }
            }
            stream.synchronize();
        }
    }

    private static long stateAddress(CudaLowLatencyKernels state, String field) {
        return state.rankState.address() + state.gpu.structs.rankState.offset(field);
    }

    Tensor upload(int rank, DType dtype, MemorySegment values, long... shape) {
        DevicePool.Block block = pools.get(rank).allocate(values.byteSize());
        streams.get(rank).copy(block.address(), values.address(), values.byteSize());
        streams.get(rank).synchronize();
        return block.tensor(dtype, shape);
    }

    /** Overwrites the beginning of a tensor. */
    void write(MemorySegment values, Tensor tensor) {
        streams.getFirst().copy(tensor.address(), values.address(), values.byteSize());
        streams.getFirst().synchronize();
    }

    byte[] download(int rank, Tensor tensor, long numBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(Math.max(numBytes, 1));
            streams.get(rank).copy(memory.address(), tensor.address(), numBytes);
            streams.get(rank).synchronize();
            return memory.asSlice(0, numBytes).toArray(ValueLayout.JAVA_BYTE);
        }
    }

    /** Dispatches on all ranks at once; {@code weights} travel too unless they are null. */
    List<LowLatencyDispatchResult> dispatch(
            List<Tensor> x, List<Tensor> topkIdx, List<Tensor> weights, LowLatencyFormat format) {
        List<Operation<LowLatencyDispatchResult>> operations = new ArrayList<>();
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            operations.add(
                    kernels.get(rank)
                            .prepareDispatch(
                                    LowLatencyDispatchPlan.builder(x.get(rank), topkIdx.get(rank))
                                            .format(format)
                                            .topkWeights(weights == null ? null : weights.get(rank))
                                            .build()));
        }
        return run(operations);
    }

    /** Combines what experts that change nothing return; pre-reduced if weights are null. */
    List<LowLatencyCombineResult> combine(
            List<LowLatencyDispatchResult> dispatched,
            List<Tensor> topkIdx,
            List<Tensor> weights,
            CombineFormat format) {
        List<Operation<LowLatencyCombineResult>> operations = new ArrayList<>();
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            LowLatencyDispatchResult result = dispatched.get(rank);
            LowLatencyCombinePlan.Builder request =
                    weights == null
                            ? LowLatencyCombinePlan.preReduced(
                                    result.recvX(), topkIdx.get(rank), result.handle())
                            : LowLatencyCombinePlan.builder(
                                    result.recvX(),
                                    topkIdx.get(rank),
                                    weights.get(rank),
                                    result.handle());
            operations.add(kernels.get(rank).prepareCombine(request.format(format).build()));
        }
        return run(operations);
    }

    private <R> List<R> run(List<Operation<R>> operations) {
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            if (rank == NUM_RANKS - 1) {
                LockSupport.parkNanos(lastsDelay.toNanos());
            }
            operations.get(rank).begin();
        }
        RuntimeException failure = null;
        for (Operation<R> operation : operations) {
            try {
                operation.complete();
            } catch (RuntimeException e) {
                if (failure == null) {
                    failure = e;
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
        return operations.stream().map(operation -> operation.result(null, null)).toList();
    }

    /** Every byte that a dispatch defines at a rank. */
    byte[] received(int rank, LowLatencyDispatchResult result, LowLatencyFormat format) {
        int numExperts = limits.numLocalExperts(NUM_RANKS);
        int slots = NUM_RANKS * limits.maxTokens();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] counts = download(rank, result.recvCount(), 4L * numExperts);
        out.writeBytes(counts);
        out.writeBytes(download(rank, result.handle().layoutRange(), 8L * numExperts * NUM_RANKS));
        byte[] sources = download(rank, result.handle().srcInfo(), 4L * numExperts * slots);
        long rowBytes = (long) result.recvX().dtype().sizeBytes() * limits.hidden();
        byte[] rows = download(rank, result.recvX(), rowBytes * numExperts * slots);
        int groups = limits.hidden() / Fp8E4m3.CHANNELS_PER_SCALE;
        byte[] scales =
                format.isFp8()
                        ? download(rank, result.recvScales(), 4L * numExperts * slots * groups)
                        : new byte[0];
        for (int expert = 0; expert < numExperts; expert++) {
            int count =
                    MemorySegment.ofArray(counts).get(ValueLayout.JAVA_INT_UNALIGNED, 4L * expert);
            out.write(sources, 4 * expert * slots, 4 * count);
            out.write(rows, (int) rowBytes * expert * slots, (int) rowBytes * count);
            for (int column = 0; column < groups && scales.length > 0; column++) {
                out.write(scales, 4 * (expert * groups + column) * slots, 4 * count);
            }
        }
        return out.toByteArray();
    }

    @Override
    public void close() {
        streams.forEach(CudaStream::synchronize);
        kernels.forEach(CudaLowLatencyKernels::close);
        pools.forEach(DevicePool::close);
        streams.forEach(CudaStream::close);
        heaps.forEach(VirtualMemory::close);
    }
}
