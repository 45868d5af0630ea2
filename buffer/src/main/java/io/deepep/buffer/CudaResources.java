package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.DeviceEvent;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.normal.cuda.CudaNormalKernels;
import java.util.List;

/**
 * The CUDA backend of one rank. Operations are enqueued on the communication stream; a synchronous
 * call without a compute stream waits on the host, with one the compute stream waits.
 *
 * <p>What may wait for other kernels of the GPU (making streams, loading kernels) is done while the
 * buffer opens, between two meetings of all ranks. Later calls do nothing of the kind, so that a
 * rank never waits for a kernel that waits for it.
 */
final class CudaResources implements Resources {
    private final CudaContext context;
    private final CudaStream stream;
    private final CudaHeaps heaps;

    /** The RDMA buffers of virtual nodes; null on one node. */
    private final CudaHeaps rdmaHeaps;

    private final CudaNormalKernels normal;

    /** The end of a compute stream when a call was made, used again by the next call. */
    private final CudaEvent entered;

    private CudaResources(
            CudaContext context,
            CudaStream stream,
            CudaHeaps heaps,
            CudaHeaps rdmaHeaps,
            CudaNormalKernels normal) {
        this.context = context;
        this.stream = stream;
        this.heaps = heaps;
        this.rdmaHeaps = rdmaHeaps;
        this.normal = normal;
        this.entered = CudaEvent.create(context);
    }

    /** Allocates and meets the peers: collective. */
    static CudaResources open(BufferOptions options) {
        CudaContext context = CudaContext.shared(CudaDevice.of(options.device().index()));
        GpuSharing sharing = GpuSharing.agree(options, context.cudaDevice());
        CudaStream stream = CudaStream.create(context, context.greatestStreamPriority());
        CudaHeaps heaps = CudaHeaps.open(options, context, options.numNvlBytes());
        CudaHeaps rdmaHeaps =
                options.topology().isInternode()
                        ? CudaHeaps.open(options, context, options.numRdmaBytes())
                        : null;
        CudaNormalKernels normal =
                new CudaNormalKernels(
                        new CudaNormalKernels.Place(
                                context,
                                stream,
                                options.topology(),
                                heaps.addresses(),
                                rdmaHeaps == null ? List.of() : rdmaHeaps.addresses(),
                                sharing.mostRanksPerGpu(),
                                options.timeout().toNanos()),
                        options.normal(),
                        options.dispatchConfig(),
                        options.combineConfig());
        // Nobody launches before everybody's memory is zeroed and kernels are loaded: loading can
        // wait for a kernel that waits for it.
        options.communicator().barrier(options.timeout());
        return new CudaResources(context, stream, heaps, rdmaHeaps, normal);
    }

    @Override
    public NormalKernels normal() {
        return normal;
    }

    @Override
    public LowLatencyKernels lowLatency() {
        return null;
    }

    @Override
    public Stream communicationStream() {
        return stream;
    }

    @Override
    public <R> R run(PlannedOperation<R> operation, CallOptions options) {
        start(options);
        if (stream.isCapturing()) {
            requireCapturable((CudaOperation<R>) operation.operation(), options);
        }
        operation.beginWork().run();
        if (!options.asyncFinish()) {
            if (options.computeStream() != null) {
                options.computeStream().waitFor(operation.event());
            } else {
                operation.completeWork().run();
            }
        }
        return operation.result(operation.event());
    }

    private static void requireCapturable(CudaOperation<?> operation, CallOptions options) {
        if (!operation.isCapturable()) {
            throw new IllegalStateException(
                    "a dispatch with exact counts waits for them on the CPU and cannot go into a graph; give"
                            + " numWorstTokens or a handle");
        }
        if (!options.asyncFinish() && options.computeStream() == null) {
            throw new IllegalStateException(
                    "a synchronous call without a compute stream waits on the CPU and cannot go into a graph; use"
                            + " CallOptions.async() or on(stream)");
        }
    }

    /** Preparing allocates, and zeroes what is to be zero once and not at every replay. */
    @Override
    public void requirePreparable(CallOptions options) {
        boolean capturing =
                options.computeStream() instanceof CudaStream compute && compute.isCapturing();
        if (capturing || stream.isCapturing()) {
            throw new IllegalStateException(
                    "the first call of a request allocates and cannot go into a graph; make the call once before the"
                            + " capture");
        }
    }

    private void start(CallOptions options) {
        if (options.previousEvent() != null) {
            joinStream(options.previousEvent());
        } else if (options.computeStream() instanceof CudaStream compute
                && compute.device().equals(stream.device())) {
            compute.record(entered);
            stream.waitFor(entered);
        } else if (options.computeStream() != null) {
            joinStream(options.computeStream().record());
        }
    }

    private void joinStream(Event event) {
        if (event instanceof DeviceEvent) {
            stream.waitFor(event);
        } else {
            event.synchronize();
        }
    }

    @Override
    public void receive(PlannedOperation<?> operation) {
        operation.completeWork().run();
    }

    @Override
    public void await(CallOptions options) {
        requirePreparable(options);
        start(options);
    }

    @Override
    public Tensor localTensor(DType dtype, long numElements, long offset, boolean rdma) {
        if (rdma && rdmaHeaps == null) {
            throw new IllegalArgumentException(
                    "rdma=true but one node has no RDMA buffer; take the NVL buffer");
        }
        CudaHeaps holder = rdma ? rdmaHeaps : heaps;
        long numBytes = Math.multiplyExact(numElements, dtype.sizeBytes());
        return Tensor.onDevice(
                context.device(),
                holder.localAddress() + offset,
                numBytes,
                dtype,
                new long[] {numElements},
                new long[] {1});
    }

    @Override
    public void close() {
        stream.synchronize();
        normal.close();
        stream.close();
        heaps.close();
        if (rdmaHeaps != null) {
            rdmaHeaps.close();
        }
    }
}
