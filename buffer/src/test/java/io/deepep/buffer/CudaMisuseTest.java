package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.Event;
import io.deepep.Graph;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.host.HostStream;
import io.deepep.observe.BufferObserver;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Buffers on GPUs that are closed at the wrong time, and events that are used after that. */
@BackendSuite(only = "cuda")
class CudaMisuseTest {
    private static final int TOKENS = 4;
    private static final int HIDDEN = 128;
    private static final LowLatencyLimits LOW_LATENCY = new LowLatencyLimits(TOKENS, HIDDEN, 1, 2);

    private final TestBackend backend = BufferTestBackends.CUDA;
    private final AtomicReference<Buffer> opened = new AtomicReference<>();

    private Buffer.Builder builder(Communicator communicator) {
        return Buffer.builder(communicator)
                .device(backend.device(communicator.rank(), communicator.size()))
                .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2));
    }

    private Buffer open(InProcessGroup group, BufferObserver observer) {
        opened.set(builder(group.communicator(0)).observer(observer).open());
        return opened.get();
    }

    private Tensor tensor(Buffer buffer, DType dtype, long... shape) {
        Device device = buffer.options().device();
        return backend.upload(device, HostTensors.allocate(dtype, shape));
    }

    private DispatchPlan.Builder plan(Buffer buffer) {
        return DispatchPlan.builder(tensor(buffer, DType.BF16, TOKENS, HIDDEN))
                .topk(tensor(buffer, DType.I64, TOKENS, 1), null, 2);
    }

    private LowLatencyDispatchPlan.Builder lowLatencyPlan(Buffer buffer) {
        return LowLatencyDispatchPlan.builder(
                tensor(buffer, DType.BF16, TOKENS, HIDDEN), tensor(buffer, DType.I64, TOKENS, 1));
    }

    private DispatchPlan worstCase(Buffer buffer) {
        return plan(buffer).numWorstTokens(TOKENS).build();
    }

    /** The observer is told of a synchronous call at its end, of others by the next. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anObserverCannotClose(boolean atNextCall) throws InterruptedException {
        List<Throwable> refused = new CopyOnWriteArrayList<>();
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer buffer =
                    open(group, _ -> refused.add(catchThrowable(() -> opened.get().close())));
            if (atNextCall) {
                DispatchPlan plan = worstCase(buffer);
                buffer.dispatch(plan, CallOptions.async());
                buffer.dispatch(plan, CallOptions.async());
            } else {
                assertThat(buffer.dispatch(plan(buffer).build()).numRecvTokens()).isEqualTo(TOKENS);
            }
            assertThat(refused)
                    .singleElement()
                    .isInstanceOf(IllegalStateException.class)
                    .extracting(Throwable::getMessage)
                    .asString()
                    .contains("cannot be closed within its own call");
            buffer.close();
        }
    }

    @Test
    void anotherThreadCannotMaskDuringACall() throws InterruptedException {
        List<Throwable> refused = new CopyOnWriteArrayList<>();
        Runnable mask = () -> refused.add(catchThrowable(() -> opened.get().updateMask(0, false)));
        try (InProcessGroup group = InProcessGroup.of(1);
                Buffer buffer = open(group, _ -> runOnAnotherThread(mask))) {
            buffer.dispatch(plan(buffer).build());
        }
        assertThat(refused)
                .singleElement()
                .isInstanceOf(IllegalStateException.class)
                .extracting(Throwable::getMessage)
                .asString()
                .contains("use the buffer of rank 0 at once");
    }

    private static void runOnAnotherThread(Runnable action) {
        Thread thread = Thread.ofPlatform().start(action);
        try {
            thread.join();
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Where the call launches next, that would be into memory that is gone. */
    @Test
    void aThreadThatClosesWaitsForTheCall() throws InterruptedException {
        ClosingThread closer = new ClosingThread(() -> opened.get().close());
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer buffer = open(group, _ -> closer.start());
            DispatchPlan plan = worstCase(buffer);
            buffer.dispatch(plan, CallOptions.async());
            buffer.dispatch(plan, CallOptions.async()).event().synchronize();
            closer.join();
            assertThatThrownBy(() -> buffer.dispatch(plan)).hasMessageContaining("is closed");
        }
    }

    @Test
    void aThreadThatClosesWaitsForTheAdmission() throws InterruptedException {
        ClosingThread closer = new ClosingThread(() -> opened.get().close());
        try (InProcessGroup group = InProcessGroup.of(1);
                InProcessGroup next = InProcessGroup.of(1)) {
            Buffer buffer = open(group, _ -> {});
            buffer.admit(closer.startIn(next.communicator(0)));
            closer.join();
        }
    }

    /** What would wait for the stream is refused, and the capture stays valid. */
    @Test
    void inACapture() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer buffer = builder(group.communicator(0)).lowLatency(LOW_LATENCY).open();
            DispatchPlan plan = worstCase(buffer);
            buffer.dispatch(plan);
            Stream stream = buffer.communicationStream();
            Graph graph =
                    Graph.capture(
                            stream,
                            () -> {
                                buffer.dispatch(plan, CallOptions.async());
                                refusesInCapture(buffer::close);
                                refusesInCapture(buffer::rejoin);
                                refusesInCapture(buffer::queryMask);
                                refusesInCapture(() -> buffer.updateMask(0, false));
                            });
            graph.replay();
            buffer.close();
            graph.close();
        }
    }

    private static void refusesInCapture(Runnable call) {
        assertThat(catchThrowable(call::run))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("end the capture");
    }

    /** The event of a call on the buffer's own stream is the end of that, which is gone. */
    @Test
    void eventsOfAClosedBufferAreDone() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(1);
                Buffer other = open(group, _ -> {});
                TestStream engine = backend.newStream(other.options().device())) {
            Event event;
            try (Buffer buffer = builder(group.communicator(0)).lowLatency(LOW_LATENCY).open()) {
                LowLatencyDispatchPlan plan = lowLatencyPlan(buffer).build();
                CallOptions inOrder = CallOptions.sync().on(buffer.communicationStream());
                event = buffer.lowLatencyDispatch(plan, inOrder).event();
            }
            assertThat(event.isDone()).isTrue();
            event.synchronize();
            engine.stream().waitFor(event);
            other.dispatch(plan(other).build(), CallOptions.sync().after(event));
        }
    }

    /** As it may if that is a buffer's, and they wait for the event of a call on it. */
    @Test
    void aStreamIsClosedWhileThreadsWaitForIt() throws InterruptedException {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (PinnedMemory gate = PinnedMemory.allocate(context, Integer.BYTES)) {
            for (int round = 1; round <= 60; round++) {
                CudaStream stream = CudaStream.create(context);
                stream.waitForInt(gate.deviceAddress(), round);
                Thread first = Thread.ofPlatform().start(stream::awaitEnd);
                Thread second = Thread.ofPlatform().start(stream::awaitEnd);
                JAVA_INT.varHandle().setRelease(gate.segment(), 0L, round);
                while (!stream.isIdle()) {
                    Thread.onSpinWait();
                }
                stream.close();
                first.join();
                second.join();
            }
        }
    }

    /** Not only once they have waited for it. */
    @Test
    void whatARankLacksToOpenAllLearn() throws InterruptedException {
        EmulatedGpus.require("others do not fail when they are asked to");
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Buffer.Builder builder =
                                builder(communicator).startTimeout(Duration.ofSeconds(5));
                        if (communicator.rank() == 1) {
                            EmulatedGpus.failCall("cuMemsetD8Async", 0);
                        }
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining("rank 1: cuMemsetD8Async failed on cuda:1")
                                .hasMessageContaining("free memory");
                        builder.open().close();
                    });
        }
    }

    /** As after a buffer that could not be opened. */
    @Test
    void memoryStaysUntilTheWorkOnItIsOver() throws InterruptedException {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (PinnedMemory gate = PinnedMemory.allocate(context, Integer.BYTES);
                CudaStream stream = CudaStream.create(context)) {
            DevicePool pool = new DevicePool(stream);
            stream.waitForInt(gate.deviceAddress(), 1);
            Thread closing = Thread.ofPlatform().start(pool::close);
            Thread.sleep(200);
            boolean waits = closing.isAlive();
            JAVA_INT.varHandle().setRelease(gate.segment(), 0L, 1);
            closing.join();
            stream.synchronize();
            assertThat(waits).isTrue();
        }
    }

    /** The ranks are out of step where a call has begun that cannot go on. */
    @ParameterizedTest
    @CsvSource({"cuLaunchKernelEx, 0", "cuStreamWaitEvent, 1"})
    void aHookThatFailsFailsTheBuffer(String function, int callsBefore)
            throws InterruptedException {
        EmulatedGpus.require("others do not fail when they are asked to");
        try (InProcessGroup group = InProcessGroup.of(1);
                Buffer buffer = builder(group.communicator(0)).lowLatency(LOW_LATENCY).open();
                TestStream engine = backend.newStream(buffer.options().device())) {
            LowLatencyDispatchPlan plan = lowLatencyPlan(buffer).receiveHook(true).build();
            Runnable hook =
                    buffer.lowLatencyDispatch(plan, CallOptions.sync().on(engine.stream()))
                            .receiveHook();
            EmulatedGpus.failCall(function, callsBefore);
            assertThatThrownBy(hook::run)
                    .isInstanceOf(NativeCallException.class)
                    .hasMessageContaining(function);
            assertThatThrownBy(() -> buffer.lowLatencyDispatch(plan))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("failed earlier");
        }
    }

    /** The other ranks make the call in any case. */
    @Test
    void afterWorkThatFailed() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(1);
                HostStream host = new HostStream("engine");
                Buffer buffer = open(group, _ -> {})) {
            Event failed =
                    host.submit(
                            () -> {
                                throw new IllegalArgumentException("engine");
                            });
            for (int call = 0; call < 2; call++) { // in flight, or over
                buffer.dispatch(plan(buffer).build(), CallOptions.sync().after(failed));
            }
            assertThatThrownBy(failed::synchronize).hasMessageContaining("engine");
        }
    }

    /** Its masks are gone with it. */
    @Test
    void aTimeOutIsToldAfterTheBufferIsClosed() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Event event = null;
                        try (Buffer buffer =
                                builder(communicator)
                                        .maskTimedOutRanks(true)
                                        .timeout(Duration.ofMillis(200))
                                        .startTimeout(Duration.ofSeconds(5))
                                        .open()) {
                            DispatchPlan late =
                                    plan(buffer)
                                            .timeout(Duration.ofMillis(200))
                                            .numWorstTokens(2 * TOKENS)
                                            .build();
                            if (communicator.rank() == 0) {
                                event = buffer.dispatch(late, CallOptions.async()).event();
                            }
                        }
                        if (event != null) {
                            assertThatThrownBy(event::synchronize)
                                    .isInstanceOf(DeepEpTimeoutException.class);
                        }
                    });
        }
    }

    /** Also where it is asked twice, though the stream cannot tell any more what has run last. */
    @Test
    void aTimeOutOfLowLatencyModeIsToldAfterTheBufferIsClosed() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Event event = null;
                        try (Buffer buffer = builder(communicator).lowLatency(LOW_LATENCY).open()) {
                            LowLatencyDispatchPlan late =
                                    lowLatencyPlan(buffer).timeout(Duration.ofMillis(200)).build();
                            if (communicator.rank() == 0) {
                                event =
                                        buffer.lowLatencyDispatch(late, CallOptions.async())
                                                .event();
                            }
                        }
                        for (int time = 0; event != null && time < 2; time++) {
                            assertThatThrownBy(event::synchronize)
                                    .isInstanceOf(DeepEpTimeoutException.class);
                        }
                    });
        }
    }
}
