package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.host.HostStream;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A buffer on the host that is closed while a call is in flight keeps its memory until the end. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ClosedInCallTest {
    /**
     * Closes it while a call waits, on a thread that is interrupted, or not; returns whether it is
     * so afterwards.
     */
    private static boolean closeInCall(Buffer buffer, boolean interrupted) throws Exception {
        Runnable release = HostTestStream.hold(buffer.communicationStream());
        DispatchPlan plan = SmallExchange.plan().numWorstTokens(SmallExchange.NUM_TOKENS).build();
        Event call = buffer.dispatch(plan, CallOptions.async()).event();
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
        release.run();
        boolean flag = closing.get();
        call.synchronize();
        return flag;
    }

    @Test
    void onAStreamOfTheEngine() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1);
                HostStream stream = new HostStream("engine")) {
            Buffer buffer =
                    SmallExchange.builder(group.communicator(0)).communicationStream(stream).open();
            assertThat(closeInCall(buffer, false)).isFalse();
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
                    SmallExchange.builder(group.communicator(0))
                            .observer(_ -> refused.set(catchThrowable(() -> buffer.get().close())))
                            .open());
            CallOptions options = async ? CallOptions.async() : CallOptions.sync();
            DispatchResult result = buffer.get().dispatch(SmallExchange.plan().build(), options);
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
            Buffer.Builder builder = SmallExchange.builder(group.communicator(0));
            Buffer idle = builder.open();
            try (Buffer buffer =
                    builder.observer(_ -> refused.set(catchThrowable(idle::close))).open()) {
                buffer.dispatch(SmallExchange.plan().build());
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
            Buffer buffer = SmallExchange.builder(group.communicator(0)).open();
            ClosingThread closer = new ClosingThread(buffer::close);
            buffer.admit(closer.startIn(next.communicator(0)));
            closer.join();
        }
    }

    @Test
    void byAThreadThatIsInterrupted() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer buffer = SmallExchange.builder(group.communicator(0)).open();
            assertThat(closeInCall(buffer, true)).isTrue();
        }
    }
}
