package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.Network;
import io.deepep.NormalDefaults;
import io.deepep.NormalLimits;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.observe.BufferObserver;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * When runs are reported to observers, also those whose end the host never asks for, as on GPUs.
 */
class ObservedOperationTest {
    private final InProcessGroup group = InProcessGroup.of(1);
    private final List<ObservedCall> told = new ArrayList<>();
    private long waited;
    private boolean capturing;

    /** What a run asks of a backend; there is nothing else. */
    private final Resources stage =
            (Resources)
                    Proxy.newProxyInstance(
                            Resources.class.getClassLoader(),
                            new Class<?>[] {Resources.class},
                            (_, method, _) ->
                                    switch (method.getName()) {
                                        case "isCapturing" -> capturing;
                                        case "waits" -> new long[] {waited};
                                        case "timer" -> null;
                                        default ->
                                                throw new UnsupportedOperationException(
                                                        method.getName());
                                    });

    @AfterEach
    void close() {
        group.close();
    }

    /** An operation that waits 5 ns in its first half and 7 in its second. */
    private class Waiting implements Operation<String> {
        @Override
        public void begin() {
            waited += 5;
        }

        @Override
        public void complete() {
            waited += 7;
        }

        @Override
        public String result(Event event, Runnable receiveHook) {
            return "result";
        }

        @Override
        public void describe(RecordedFacts facts, boolean completed) {
            facts.tokens(3, completed ? 4 : RecordedFacts.UNKNOWN);
        }
    }

    /** On a GPU the second half of a hooked run is enqueued by itself; the end can be asked for. */
    private final class WaitingOnGpu extends Waiting implements CudaOperation<String> {
        private RuntimeException failure;

        @Override
        public void receive() {
            waited += 11;
        }

        @Override
        public void complete() {
            if (failure != null) {
                throw failure;
            }
        }

        @Override
        public DeviceEvent event() {
            throw new UnsupportedOperationException();
        }
    }

    private ObservedOperation<String> operation(boolean hooked) {
        return operation(new Waiting(), hooked);
    }

    private ObservedOperation<String> operation(Operation<String> target, boolean hooked) {
        return operation(target, hooked, List.of(told::add));
    }

    private ObservedOperation<String> operation(
            Operation<String> target, boolean hooked, List<BufferObserver> observers) {
        BufferOptions options =
                new BufferOptions(
                        group.communicator(0),
                        new EpTopology(0, 1, 1),
                        Device.host(),
                        null,
                        Network.auto(),
                        NormalLimits.of(1, 128, 1, 1),
                        null,
                        0,
                        0,
                        Config.recommended(1),
                        Config.recommended(1),
                        NormalDefaults.recommended(1),
                        Duration.ofSeconds(1),
                        null,
                        false,
                        observers);
        return new ObservedOperation<>(
                target, CallKind.LOW_LATENCY_DISPATCH, hooked, new CallObservers(options), stage);
    }

    private ObservedCall next() {
        assertThat(told).hasSize(1);
        return told.removeFirst();
    }

    /** Also where streams wait for their ends. */
    @Test
    void callsThatNobodyObservesMakeNoGarbage() {
        ObservedOperation<String> operation = operation(new WaitingOnGpu(), true, List.of());
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        int calls = 10_000;
        long leastBytes = Long.MAX_VALUE;
        for (int round = 0; round < 5; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < calls; i++) {
                operation.begin();
                operation.receive();
                operation.leave();
            }
            leastBytes = Math.min(leastBytes, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertThat(leastBytes).as("bytes of %d calls", calls).isLessThan(calls);
    }

    @Test
    void waitsOfBothHalvesCountAndThoseBetweenDoNot() {
        ObservedOperation<String> operation = operation(false);
        waited = 100;
        operation.begin();
        waited += 1000;
        operation.complete();
        ObservedCall call = next();
        assertThat(call.facts().waitNanos()).containsExactly(12);
        assertThat(call.facts().numRecvTokens()).isEqualTo(4);
        assertThat(call.finished()).isTrue();
    }

    @Test
    void aFirstHalfThatFailsCountsItsOwnWaitsAlone() {
        waited = 1000;
        ObservedOperation<String> failing =
                operation(
                        new Waiting() {
                            @Override
                            public void begin() {
                                super.begin();
                                throw new IllegalStateException("no");
                            }
                        },
                        false,
                        List.of(told::add));
        assertThatThrownBy(failing::begin).hasMessage("no");
        assertThat(next().facts().waitNanos()).containsExactly(5);
    }

    /** A GPU's event may be asked again and again. */
    @Test
    void laterQuestionsForTheEndTellNothing() {
        ObservedOperation<String> operation = operation(false);
        operation.begin();
        operation.complete();
        operation.complete();
        assertThat(next().finished()).isTrue();
    }

    @Test
    void aRunWhoseEndNobodyAskedForIsToldWithTheNext() {
        ObservedOperation<String> operation = operation(false);
        operation.begin();
        assertThat(told).isEmpty();
        operation.begin();
        ObservedCall call = next();
        assertThat(call.finished()).isFalse();
        assertThat(call.spanNanos()).isZero();
        assertThat(call.completeNanos()).isZero();
        assertThat(call.beginNanos()).isPositive();
        assertThat(call.facts().waitNanos()).containsExactly(5);
        operation.complete();
        assertThat(next().finished()).isTrue();
    }

    @Test
    void hooksServeTheOldestOfTwoRuns() {
        ObservedOperation<String> operation = operation(true);
        operation.begin();
        operation.begin();
        assertThat(told).isEmpty();
        operation.complete();
        operation.complete();
        assertThat(told).hasSize(2).allMatch(ObservedCall::finished);
        assertThat(told.get(0).spanNanos()).isGreaterThan(told.get(1).beginNanos());
    }

    /** A GPU's event may be asked before the hook has run, and after it. */
    @Test
    void aHookedRunOnAGpuEndsWithItsHook() {
        ObservedOperation<String> operation = operation(new WaitingOnGpu(), true);
        operation.begin();
        operation.complete();
        operation.begin();
        operation.complete();
        assertThat(told).isEmpty();
        operation.receive();
        operation.complete();
        ObservedCall first = next();
        assertThat(first.finished()).isTrue();
        assertThat(first.completeNanos()).isPositive();
        operation.complete();
        assertThat(told).isEmpty();
        operation.receive();
        operation.complete();
        assertThat(next().finished()).isTrue();
    }

    @Test
    void aSendThatFailsOnAGpuEndsItsRun() {
        WaitingOnGpu target = new WaitingOnGpu();
        ObservedOperation<String> operation = operation(target, true);
        operation.begin();
        target.failure = new IllegalStateException("lost");
        assertThatThrownBy(operation::complete).isSameAs(target.failure);
        ObservedCall call = next();
        assertThat(call.failure()).isSameAs(target.failure);
        assertThat(call.finished()).isFalse();
        assertThatThrownBy(operation::complete).isSameAs(target.failure);
        assertThat(told).isEmpty();
    }

    @Test
    void whatCannotBeMeasuredFailsNoCall() {
        ObservedOperation<String> operation =
                operation(
                        new Waiting() {
                            @Override
                            public void describe(RecordedFacts facts, boolean completed) {
                                throw new IllegalStateException("no facts today");
                            }
                        },
                        false);
        operation.begin();
        operation.complete();
        assertThat(next().finished()).isTrue();
    }

    /** What is left to streams is not mistaken for a later run that the host waits for. */
    @Test
    void aRunThatIsLeftToStreamsKeepsItsPlace() {
        ObservedOperation<String> operation = operation(true);
        operation.begin();
        operation.leave();
        operation.begin();
        assertThat(next().finished()).isFalse();
        operation.begin();
        operation.leave();
        operation.complete();
        assertThat(next().finished()).isTrue();
        operation.complete();
        assertThat(told).isEmpty();
    }

    /** Its time is asked of the GPU, which a capture forbids. */
    @Test
    void aRunIsNotToldWhileAGraphIsRecorded() {
        ObservedOperation<String> operation = operation(false);
        operation.begin();
        capturing = true;
        operation.begin();
        assertThat(told).isEmpty();
        capturing = false;
        operation.begin();
        assertThat(next().finished()).isFalse();
    }

    @Test
    void whatGoesIntoAGraphIsNotTold() {
        ObservedOperation<String> operation = operation(false);
        capturing = true;
        operation.begin();
        operation.complete();
        assertThat(told).isEmpty();
    }
}
