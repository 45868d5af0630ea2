package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Backend;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineRequest;
import io.deepep.CombineResult;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.PinnedMemory;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Dispatch and combine run beside an engine's kernel on another stream. The kernel multiplies until
 * the communication stream tells it to stop after the call, so it ends in time only if the call
 * began and ended while it ran.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CudaOverlapTest {
    private static final int NUM_RANKS = 4;
    private static final int TOKENS = 64;
    private static final int HIDDEN = 512;
    private static final int NUM_SMS = 8;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final CudaTestBackend backend = new CudaTestBackend();

    @Test
    void callsRunBesideAnEnginesKernel() throws InterruptedException {
        String reason = backend.unavailabilityReason().orElse("");
        RequiredBackends.assume(Backend.CUDA, reason.isEmpty(), reason);
        Routing routing = RoutingSpec.of(NUM_RANKS, TOKENS, 16, 4).withSeed(3).generate();
        List<Tokens> tokens =
                IntStream.range(0, NUM_RANKS)
                        .mapToObj(rank -> Tokens.bf16(rank, TOKENS, HIDDEN, 3))
                        .toList();
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(communicator -> runRank(communicator, routing, tokens));
        }
    }

    private void runRank(Communicator communicator, Routing routing, List<Tokens> tokens) {
        int rank = communicator.rank();
        Device device = backend.device(rank, NUM_RANKS);
        Config config = Config.recommendedForDispatch(NUM_RANKS).withNumSms(NUM_SMS);
        try (Buffer buffer =
                        Buffer.builder(communicator)
                                .backend(Backend.CUDA)
                                .device(device)
                                .normal(NormalLimits.of(TOKENS, HIDDEN, 4, 16))
                                .dispatchConfig(config)
                                .combineConfig(config)
                                .timeout(TIMEOUT)
                                .open();
                Multiplication engine = new Multiplication(device)) {
            communicator.barrier(TIMEOUT);
            int rows = TOKENS * NUM_RANKS;
            NormalOracle oracle = new NormalOracle(routing);
            NormalDispatchCheck check = NormalDispatchCheck.of(oracle, tokens).worstCase(rows);
            DispatchRequest request =
                    DispatchRequest.builder(upload(device, tokens.get(rank).x()))
                            .topk(
                                    upload(device, HostTensors.i64(routing.topkIdx(rank), 4)),
                                    upload(device, HostTensors.f32(routing.weights(rank), 4)),
                                    16)
                            .numWorstTokens(rows)
                            .build();
            CudaStream stream = (CudaStream) buffer.communicationStream();
            DispatchResult[] received = new DispatchResult[1];
            engine.beside(
                    communicator,
                    stream,
                    () -> received[0] = buffer.dispatch(request, CallOptions.async()));
            received[0].event().synchronize();
            check.check(rank, received[0], backend::download);

            List<Tensor> outputs =
                    IntStream.range(0, NUM_RANKS)
                            .mapToObj(r -> Tokens.expertOutputs(rows, HIDDEN, 7 + r))
                            .toList();
            CombineRequest back =
                    CombineRequest.builder(upload(device, outputs.get(rank)), received[0].handle())
                            .build();
            CombineResult[] home = new CombineResult[1];
            engine.beside(
                    communicator,
                    stream,
                    () -> home[0] = buffer.combine(back, CallOptions.async()));
            home[0].event().synchronize();
            NormalCombineOracle.of(oracle, new EpTopology(0, NUM_RANKS, NUM_RANKS).numNvlRanks())
                    .check(rank, outputs, List.of(), backend.download(home[0].x()));
        }
    }

    private Tensor upload(Device device, Tensor hostTensor) {
        return backend.upload(device, hostTensor);
    }

    /** An engine's kernel on a stream of its own. Made while no rank waits for another. */
    private static final class Multiplication implements AutoCloseable {
        private static final int NUM_BLOCKS = 8;
        private static final int TILE = 16;
        private static final int DEPTH = 512;
        private static final long TIMEOUT_NANOS = 5_000_000_000L;
        private static final long STOP = 0;
        private static final long RUNNING = 8;
        private static final long BEGIN = 16;
        private static final long END = 24;
        private static final long GAVE_UP = 32;
        private static final long BEFORE_CALL = 40;
        private static final long AFTER_CALL = 48;

        private final Arena arena = Arena.ofShared();
        private final CudaContext context;
        private final CudaStream stream;
        private final CudaFunction multiply;
        private final CudaFunction stamp;
        private final PinnedMemory report;
        private final Tensor memory;

        Multiplication(Device device) {
            context = CudaContext.shared(CudaDevice.of(device.index()));
            stream = CudaStream.create(context);
            CudaModule module =
                    CudaModule.loadResource(context, CudaOverlapTest.class, "overlap_checks.ptx");
            multiply = module.function("multiply_until");
            stamp = module.function("stamp");
            report = PinnedMemory.allocate(context, 64);
            int floats = 2 * DEPTH * TILE + NUM_BLOCKS * TILE * TILE;
            memory = new CudaTestBackend().upload(device, HostTensors.allocate(DType.F32, floats));
        }

        /** Enqueues {@code call} on the communication stream while the kernels of all ranks run. */
        void beside(Communicator communicator, CudaStream communication, Runnable call) {
            report.segment().fill((byte) 0);
            start();
            while (word(RUNNING) < NUM_BLOCKS) {
                Thread.onSpinWait();
            }
            communicator.barrier(TIMEOUT);
            stamp(communication, BEFORE_CALL);
            call.run();
            stamp(communication, AFTER_CALL);
            communication.writeLong(report.deviceAddress() + STOP, 1);
            stream.synchronize();
            communication.synchronize();
            assertThat(word(GAVE_UP)).as("blocks that saw no end of the call").isZero();
            assertThat(new long[] {word(BEGIN), word(BEFORE_CALL), word(AFTER_CALL), word(END)})
                    .as("begin of the kernel, of the call, end of the call, of the kernel")
                    .isSorted();
        }

        private void start() {
            long a = memory.address();
            long b = a + 4L * DEPTH * TILE;
            KernelParams params =
                    KernelParams.arguments(
                            arena, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
            params.setLong(params.offset(0), a)
                    .setLong(params.offset(1), b)
                    .setLong(params.offset(2), b + 4L * DEPTH * TILE)
                    .setInt(params.offset(3), DEPTH)
                    .setLong(params.offset(4), report.deviceAddress())
                    .setLong(params.offset(5), TIMEOUT_NANOS);
            LaunchConfig shape = new LaunchConfig(arena, NUM_BLOCKS, 1).block(TILE, TILE, 1);
            multiply.launch(shape, params, stream);
        }

        private void stamp(CudaStream on, long offset) {
            KernelParams params =
                    KernelParams.arguments(arena, JAVA_LONG)
                            .setLong(0, report.deviceAddress() + offset);
            stamp.launch(new LaunchConfig(arena, 1, 1), params, on);
        }

        private long word(long offset) {
            return (long) JAVA_LONG.varHandle().getAcquire(report.segment(), offset);
        }

        @Override
        public void close() {
            stream.close();
            arena.close();
        }
    }
}
