package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import java.lang.foreign.Arena;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Dispatch and combine run beside an engine's kernel on another stream. The kernel multiplies until
 * the communication stream tells it to stop after the call, so it ends in time only if the call
 * began and ended while it ran.
 */
@Tag("ptx")
@BackendSuite(only = "cuda")
class CudaOverlapTest {
    @Test
    void callsRunBesideAnEnginesKernel() {
        CudaExchange.run(
                rank -> {
                    try (Multiplication engine = new Multiplication(rank.context())) {
                        rank.context().meet();
                        Buffer buffer = rank.context().buffer();
                        DispatchPlan plan = CudaExchange.worstCase(rank);
                        DispatchResult received =
                                engine.beside(() -> buffer.dispatch(plan, CallOptions.async()));
                        rank.verify(received);
                        CombinePlan back = rank.home(received.handle()).build();
                        CombineResult home =
                                engine.beside(() -> buffer.combine(back, CallOptions.async()));
                        rank.verify(home);
                    }
                });
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
        private final RankContext context;
        private final CudaStream communication;
        private final CudaStream stream;
        private final CudaFunction multiply;
        private final CudaFunction stamp;
        private final PinnedMemory report;
        private final Tensor memory;

        Multiplication(RankContext context) {
            this.context = context;
            communication = (CudaStream) context.buffer().communicationStream();
            CudaContext gpu = communication.context();
            stream = CudaStream.create(gpu);
            CudaModule module =
                    CudaModule.loadResource(
                            gpu,
                            "overlap_checks.ptx",
                            CudaOverlapTest.class.getResource("overlap_checks.ptx"));
            multiply = module.function("multiply_until");
            stamp = module.function("stamp");
            report = PinnedMemory.allocate(gpu, 64);
            int floats = 2 * DEPTH * TILE + NUM_BLOCKS * TILE * TILE;
            memory = context.upload(HostTensors.allocate(DType.F32, floats));
        }

        /** Enqueues {@code call} on the communication stream while the kernels of all ranks run. */
        <R> R beside(Supplier<R> call) {
            report.segment().fill((byte) 0);
            start();
            while (word(RUNNING) < NUM_BLOCKS) {
                Thread.onSpinWait();
            }
            context.meet();
            stamp(communication, BEFORE_CALL);
            R result = call.get();
            stamp(communication, AFTER_CALL);
            communication.writeInt(report.deviceAddress() + STOP, 1);
            stream.synchronize();
            communication.synchronize();
            assertThat(word(GAVE_UP)).as("blocks that saw no end of the call").isZero();
            assertThat(new long[] {word(BEGIN), word(BEFORE_CALL), word(AFTER_CALL), word(END)})
                    .as("begin of the kernel, of the call, end of the call, of the kernel")
                    .isSorted();
            return result;
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
