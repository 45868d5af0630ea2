package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.host.HostStream;
import java.lang.foreign.Arena;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A buffer on the host that is closed while a call is in flight keeps its memory until the end. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ClosedInCallTest {
    private static final int TOKENS = 4;
    private static final int HIDDEN = 128;

    private final CountDownLatch gate = new CountDownLatch(1);

    /** A call behind {@link #gate}. */
    private Event begin(Buffer buffer) {
        Tensor tokens = Tensor.allocate(Arena.ofAuto(), DType.BF16, TOKENS, HIDDEN);
        Tensor topk = Tensor.allocate(Arena.ofAuto(), DType.I64, TOKENS, 1);
        DispatchPlan plan =
                DispatchPlan.builder(tokens).topk(topk, null, 2).numWorstTokens(TOKENS).build();
        ((HostStream) buffer.communicationStream()).submit(this::awaitGate);
        return buffer.dispatch(plan, CallOptions.async()).event();
    }

    private void awaitGate() {
        try {
            gate.await();
        } catch (InterruptedException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Closes on a thread that is interrupted, or not; returns whether it is so afterwards. */
    private boolean close(Buffer buffer, Event call, boolean interrupted) throws Exception {
        FutureTask<Boolean> closing =
                new FutureTask<>(
                        () -> {
                            if (interrupted) {
                                Thread.currentThread().interrupt();
                            }
                            buffer.close();
                            return Thread.interrupted();
                        });
        Thread closer = Thread.ofPlatform().daemon().start(closing);
        while (closer.getState() != Thread.State.WAITING && closer.isAlive()) {
            Thread.onSpinWait();
        }
        gate.countDown();
        boolean flag = closing.get();
        call.synchronize();
        return flag;
    }

    @Test
    void onAStreamOfTheEngine() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1);
                HostStream stream = new HostStream("engine")) {
            Buffer buffer =
                    Buffer.builder(group.communicator(0))
                            .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2))
                            .communicationStream(stream)
                            .open();
            assertThat(close(buffer, begin(buffer), false)).isFalse();
            stream.submit(() -> {}).synchronize(); // it is the engine's still
        }
    }

    /** It is refused, harms the call in no way, and the buffer can be closed afterwards. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void byAnObserver(boolean async) throws Exception {
        AtomicReference<Buffer> buffer = new AtomicReference<>();
        AtomicReference<Throwable> refused = new AtomicReference<>();
        try (InProcessGroup group = InProcessGroup.of(1)) {
            buffer.set(
                    Buffer.builder(group.communicator(0))
                            .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2))
                            .observer(_ -> refused.set(catchThrowable(() -> buffer.get().close())))
                            .open());
            CallOptions options = async ? CallOptions.async() : CallOptions.sync();
            Tensor tokens = Tensor.allocate(Arena.ofAuto(), DType.BF16, TOKENS, HIDDEN);
            Tensor topk = Tensor.allocate(Arena.ofAuto(), DType.I64, TOKENS, 1);
            DispatchPlan plan = DispatchPlan.builder(tokens).topk(topk, null, 2).build();
            DispatchResult result = buffer.get().dispatch(plan, options);
            result.event().synchronize();
            assertThat(refused.get())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("cannot be closed within its own call");
            assertThat(result.recvX().getFloat(0, 0)).isZero();
            HostStream stream = (HostStream) buffer.get().communicationStream();
            buffer.get().close();
            assertThatThrownBy(() -> stream.submit(() -> {})).hasMessageContaining("closed");
        }
    }

    /** Ranks whose observers close each other's buffers would wait for each other. */
    @Test
    void byAnObserverOfAnotherBuffer() {
        AtomicReference<Throwable> refused = new AtomicReference<>();
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer.Builder builder =
                    Buffer.builder(group.communicator(0))
                            .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2));
            Buffer idle = builder.open();
            try (Buffer buffer =
                    builder.observer(_ -> refused.set(catchThrowable(idle::close))).open()) {
                Tensor tokens = Tensor.allocate(Arena.ofAuto(), DType.BF16, TOKENS, HIDDEN);
                Tensor topk = Tensor.allocate(Arena.ofAuto(), DType.I64, TOKENS, 1);
                buffer.dispatch(DispatchPlan.builder(tokens).topk(topk, null, 2).build());
            }
            assertThat(refused.get())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("by an observer");
            idle.close();
        }
    }

    /** What is mapped anew in a process must not have been unmapped. */
    @Test
    void whileMemoryIsReplaced() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1);
                InProcessGroup next = InProcessGroup.of(1)) {
            Buffer buffer =
                    Buffer.builder(group.communicator(0))
                            .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2))
                            .open();
            ClosingThread closer = new ClosingThread(buffer::close);
            buffer.admit(closer.startIn(next.communicator(0)));
            closer.join();
        }
    }

    @Test
    void byAThreadThatIsInterrupted() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer buffer =
                    Buffer.builder(group.communicator(0))
                            .normal(NormalLimits.of(TOKENS, HIDDEN, 1, 2))
                            .open();
            assertThat(close(buffer, begin(buffer), true)).isTrue();
        }
    }
}
