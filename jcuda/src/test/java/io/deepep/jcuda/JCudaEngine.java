package io.deepep.jcuda;

import static jcuda.driver.JCudaDriver.cuCtxCreate;
import static jcuda.driver.JCudaDriver.cuCtxDestroy;
import static jcuda.driver.JCudaDriver.cuCtxSetCurrent;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRetain;
import static jcuda.driver.JCudaDriver.cuEventCreate;
import static jcuda.driver.JCudaDriver.cuEventDestroy;
import static jcuda.driver.JCudaDriver.cuEventRecord;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuLaunchKernel;
import static jcuda.driver.JCudaDriver.cuMemAlloc;
import static jcuda.driver.JCudaDriver.cuMemFree;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoHAsync;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoDAsync;
import static jcuda.driver.JCudaDriver.cuModuleGetFunction;
import static jcuda.driver.JCudaDriver.cuModuleLoadData;
import static jcuda.driver.JCudaDriver.cuModuleUnload;
import static jcuda.driver.JCudaDriver.cuStreamCreate;
import static jcuda.driver.JCudaDriver.cuStreamDestroy;
import static jcuda.driver.JCudaDriver.cuStreamSynchronize;
import static jcuda.driver.JCudaDriver.cuStreamWaitEvent;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;

/**
 * One rank of an engine written with JCuda alone: its tokens, its routing, and experts that double
 * their rows. Tokens come from the runtime API, all else from the driver's.
 */
final class JCudaEngine implements AutoCloseable {
    /** Doubles 16-bit floats of the BF16 kind: BF16 is the upper half of a float, exactly. */
    private static final String DOUBLE_ROWS =
            """
            .version 7.0
            .target sm_70
            .address_size 64
            .visible .entry double_rows(.param .u64 out, .param .u64 in, .param .u32 count) {
                .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .f32 %f<2>; .reg .b16 %h<3>;
                mov.u32 %r0, %ctaid.x;
                mov.u32 %r1, %ntid.x;
                mov.u32 %r2, %tid.x;
                mad.lo.u32 %r0, %r0, %r1, %r2;
                ld.param.u32 %r3, [count];
                setp.ge.u32 %p, %r0, %r3;
                @%p ret;
                ld.param.u64 %rd0, [in];
                ld.param.u64 %rd1, [out];
                mul.wide.u32 %rd2, %r0, 2;
                add.u64 %rd0, %rd0, %rd2;
                add.u64 %rd1, %rd1, %rd2;
                ld.global.b16 %h0, [%rd0];
                mov.b16 %h1, 0;
                mov.b32 %f0, {%h1, %h0};
                add.f32 %f1, %f0, %f0;
                mov.b32 {%h1, %h2}, %f1;
                st.global.b16 [%rd1], %h2;
                ret;
            }
            """;

    private static final int BLOCK = 256;

    record Shape(int tokens, int hidden, int topk, int experts, int ranks) {}

    private final Device device;
    private final int rank;
    private final Shape shape;
    private final CUstream stream = new CUstream();
    private final CUevent event = new CUevent();
    private final CUmodule module = new CUmodule();
    private final CUfunction doubleRows = new CUfunction();
    private final Pointer tokens = new Pointer();
    private final CUdeviceptr routing = new CUdeviceptr();
    private final CUdeviceptr outputs = new CUdeviceptr();
    private final Tensor x;
    private final DispatchPlan dispatch;

    JCudaEngine(Device device, int rank, Shape shape) {
        this.device = device;
        this.rank = rank;
        this.shape = shape;
        JCudaDriver.setExceptionsEnabled(true);
        JCuda.setExceptionsEnabled(true);
        cuInit(0);
        CUdevice gpu = new CUdevice();
        cuDeviceGet(gpu, device.index());
        CUcontext context = new CUcontext();
        cuDevicePrimaryCtxRetain(context, gpu);
        cuCtxSetCurrent(context);
        cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        cuEventCreate(event, 0);
        cuModuleLoadData(module, DOUBLE_ROWS);
        cuModuleGetFunction(doubleRows, module, "double_rows");
        JCuda.cudaMalloc(tokens, 2L * allocatedElements());
        cuMemAlloc(outputs, 2L * shape.ranks * allocatedElements());
        x = JCudaTensors.tensorOf(tokens, DType.BF16, shape.tokens, shape.hidden);
        dispatch = DispatchPlan.builder(x).topk(routing(), null, shape.experts).build();
    }

    private Tensor routing() {
        long[][] experts =
                IntStream.range(0, shape.tokens)
                        .mapToObj(t -> expertsOf(rank, t, shape.topk, shape.experts))
                        .toArray(long[][]::new);
        Tensor onHost = HostTensors.i64(experts, shape.topk);
        cuMemAlloc(routing, onHost.segment().byteSize());
        upload(routing, onHost);
        return JCudaTensors.tensorOf(routing, DType.I64, shape.tokens, shape.topk);
    }

    /** The experts of a token: its number decides. */
    private static long[] expertsOf(int rank, int token, int topk, int experts) {
        return IntStream.range(0, topk)
                .mapToLong(k -> (rank + token + k * (1 + token % 3)) % experts)
                .toArray();
    }

    /** How many ranks hold experts of the token. */
    static long ranksOf(int rank, int token, int topk, int expertsPerRank, int experts) {
        return IntStream.of(0)
                .mapToObj(_ -> expertsOf(rank, token, topk, experts))
                .flatMapToLong(java.util.Arrays::stream)
                .map(expert -> expert / expertsPerRank)
                .distinct()
                .count();
    }

    /** A small integer, so that sums of doubles are exact in BF16. */
    static float value(int rank, int round, int token, int channel) {
        return (rank + 3 * round + 5 * token + channel) % 15;
    }

    /** Runs with a stream of a context that is not the primary one. */
    static void withStreamOfAnotherContext(Consumer<CUstream> body) {
        JCudaDriver.setExceptionsEnabled(true);
        cuInit(0);
        CUdevice gpu = new CUdevice();
        cuDeviceGet(gpu, 0);
        CUcontext other = new CUcontext();
        cuCtxCreate(other, 0, gpu);
        CUstream stream = new CUstream();
        cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        try {
            body.accept(stream);
        } finally {
            cuCtxDestroy(other);
        }
    }

    Device device() {
        return device;
    }

    CUstream stream() {
        return stream;
    }

    Pointer pointer() {
        return tokens;
    }

    Tensor x() {
        return x;
    }

    DispatchPlan dispatch() {
        return dispatch;
    }

    long allocatedElements() {
        return (long) shape.tokens * shape.hidden;
    }

    /** Enqueues the tokens of a round. */
    void writeTokens(int round) {
        Tensor onHost = HostTensors.allocate(DType.BF16, shape.tokens, shape.hidden);
        for (int t = 0; t < shape.tokens; t++) {
            for (int h = 0; h < shape.hidden; h++) {
                onHost.setFloat(value(rank, round, t, h), t, h);
            }
        }
        upload(JCudaTensors.pointerTo(x), onHost);
    }

    private void upload(CUdeviceptr target, Tensor onHost) {
        Pointer source = Pointer.to(onHost.segment().asByteBuffer());
        cuMemcpyHtoDAsync(target, source, onHost.segment().byteSize(), stream);
    }

    /** Enqueues this rank's experts on what was received, and says how the results go back. */
    CombinePlan computeExperts(DispatchResult received) {
        Tensor rows = received.recvX();
        int count = Math.toIntExact(rows.numElements());
        if (count > 0) {
            Pointer parameters =
                    Pointer.to(
                            Pointer.to(outputs),
                            Pointer.to(JCudaTensors.pointerTo(rows)),
                            Pointer.to(new int[] {count}));
            int blocks = (count + BLOCK - 1) / BLOCK;
            cuLaunchKernel(doubleRows, blocks, 1, 1, BLOCK, 1, 1, 0, stream, parameters, null);
        }
        Tensor doubled = JCudaTensors.tensorOf(outputs, DType.BF16, rows.size(0), shape.hidden);
        return CombinePlan.builder(doubled, received.handle()).build();
    }

    /** The event, recorded at the stream's present end. */
    CUevent recordEvent() {
        cuEventRecord(event, stream);
        return event;
    }

    void waitFor(CUevent other) {
        cuStreamWaitEvent(stream, other, 0);
    }

    /**
     * A copy on the host. The stream has finished before: a copy to pageable memory waits inside
     * the driver, and other ranks of the GPU, whose kernels the stream may wait for, cannot launch
     * meanwhile.
     */
    Tensor read(Tensor onDevice) {
        cuStreamSynchronize(stream);
        Tensor onHost = HostTensors.allocate(onDevice.dtype(), onDevice.shape());
        cuMemcpyDtoHAsync(
                Pointer.to(onHost.segment().asByteBuffer()),
                JCudaTensors.pointerTo(onDevice),
                onHost.segment().byteSize(),
                stream);
        cuStreamSynchronize(stream);
        return onHost;
    }

    @Override
    public void close() {
        cuStreamSynchronize(stream);
        cuMemFree(outputs);
        cuMemFree(routing);
        JCuda.cudaFree(tokens);
        cuModuleUnload(module);
        cuEventDestroy(event);
        cuStreamDestroy(stream);
    }
}
