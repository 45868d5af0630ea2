package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Operations of libtorch in a graph, on the first GPU. */
@EnabledIf("io.deepep.djl.Moe#hasGpu")
class TorchGraphTest {
    private static final int NUM_CAPTURES = 500;

    private NDManager manager;
    private Device device;
    private CudaStream stream;
    private NDArray x;
    private NDArray y;

    @BeforeEach
    void open() {
        manager = Moe.manager();
        device = manager.getDevice();
        stream = CudaStream.create(CudaContext.shared(CudaDevice.of(device.getDeviceId())));
    }

    @AfterEach
    void close() {
        manager.close();
        stream.close();
    }

    private static NDArray twiceAndOne(NDArray of) {
        return of.add(of).add(of.onesLike());
    }

    /** Computes y of x, and closes what it makes besides. */
    private void compute(UnaryOperator<NDArray> function) {
        try (NDManager scope = manager.newSubManager()) {
            y = function.apply(TorchTensors.arrayOf(scope, TorchTensors.borrow(x)));
            y.attach(manager);
        }
    }

    private TorchGraph capture(UnaryOperator<NDArray> function) {
        compute(function);
        return TorchGraph.capture(device, () -> compute(function));
    }

    private void replay(TorchGraph graph, float value) {
        TorchTensors.cast(manager.full(x.getShape(), value), x);
        graph.replay();
        assertThat(y.min().getFloat()).isEqualTo(2 * value + 1);
        assertThat(y.max().getFloat()).isEqualTo(2 * value + 1);
    }

    @Test
    void replaysComputeWithWhatIsThere() {
        x = manager.zeros(new Shape(1000));
        try (TorchStreams.Use _ = TorchStreams.use(stream);
                TorchGraph graph = capture(TorchGraphTest::twiceAndOne)) {
            for (int i = 0; i < 10; i++) {
                replay(graph, i);
            }
        }
    }

    /** libtorch has pools for small arrays and for large ones. */
    @ParameterizedTest
    @ValueSource(longs = {1000, 1 << 22})
    void nobodyElseGetsItsMemory(long size) {
        x = manager.zeros(new Shape(size));
        try (TorchStreams.Use _ = TorchStreams.use(stream);
                TorchGraph graph = capture(TorchGraphTest::twiceAndOne)) {
            List<NDArray> others = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                others.add(manager.full(x.getShape(), (float) i));
            }
            replay(graph, 5);
            for (int i = 0; i < 20; i++) {
                assertThat(others.get(i).min().getFloat()).isEqualTo(i);
                assertThat(others.get(i).max().getFloat()).isEqualTo(i);
            }
        }
    }

    @Test
    void twoGraphsAreApart() {
        x = manager.zeros(new Shape(1000));
        try (TorchStreams.Use _ = TorchStreams.use(stream);
                TorchGraph first = capture(TorchGraphTest::twiceAndOne)) {
            NDArray ofFirst = y;
            try (TorchGraph second = capture(TorchGraphTest::twiceAndOne)) {
                replay(second, 3);
                first.replay();
                assertThat(ofFirst.max().getFloat()).isEqualTo(7);
                replay(second, 4);
                assertThat(ofFirst.max().getFloat()).isEqualTo(7);
            }
            first.replay();
            assertThat(ofFirst.max().getFloat()).isEqualTo(9);
        }
    }

    /** libtorch itself has no lock for that, and may end the process. */
    @Test
    void threadsMayCaptureAtTheSameTime() throws InterruptedException {
        int numThreads = 4;
        CyclicBarrier meeting = new CyclicBarrier(numThreads);
        AtomicInteger numCaptures = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < numThreads; i++) {
            threads.add(Thread.ofPlatform().start(() -> captureOften(meeting, numCaptures)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(numCaptures).hasValue(NUM_CAPTURES * numThreads);
    }

    private void captureOften(CyclicBarrier meeting, AtomicInteger numCaptures) {
        try (CudaStream own = CudaStream.create(stream.context());
                NDManager scope = manager.newSubManager();
                TorchStreams.Use _ = TorchStreams.use(own)) {
            NDArray zero = scope.zeros(new Shape(1));
            zero.muli(zero);
            for (int i = 0; i < NUM_CAPTURES; i++) {
                try (GraphMemory memory = new GraphMemory()) {
                    meeting.await(1, TimeUnit.MINUTES);
                    memory.begin();
                    zero.muli(zero);
                    memory.end();
                }
                numCaptures.incrementAndGet();
            }
        } catch (InterruptedException | BrokenBarrierException | TimeoutException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    @Test
    void failuresLeaveTheStreamUsable() {
        x = manager.ones(new Shape(1000));
        try (TorchStreams.Use _ = TorchStreams.use(stream)) {
            assertThatThrownBy(() -> capture(of -> twiceAndOne(failing(of)))).hasMessage("mine");
            assertThatThrownBy(() -> TorchGraph.capture(device, () -> x.add(x).toFloatArray()))
                    .isInstanceOf(EngineException.class);
            compute(TorchGraphTest::twiceAndOne);
            assertThat(y.max().getFloat()).isEqualTo(3);
            try (TorchGraph graph = capture(TorchGraphTest::twiceAndOne)) {
                replay(graph, 2);
            }
        }
    }

    private NDArray failing(NDArray of) {
        if (stream.isCapturing()) {
            throw new IllegalStateException("mine");
        }
        return of;
    }

    @Test
    void defaultStreamsAreRefused() {
        assertThatThrownBy(() -> TorchGraph.capture(device, () -> {}))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("TorchStreams.use");
        try (TorchStreams.Use _ = TorchStreams.use(stream)) {
            assertThat(TorchStreams.current(device).cudaHandle()).isEqualTo(stream.cudaHandle());
        }
        assertThat(TorchStreams.current(device).cudaHandle()).isNotEqualTo(stream.cudaHandle());
    }

    /** Also after an exception, when nobody waits for what is left. */
    @Test
    void whatWasPutOnTheStreamComesBeforeWhatIsPutOnTheNext() {
        x = manager.ones(new Shape(4096, 4096));
        y = manager.zeros(new Shape(1));
        x.matMul(x).close();
        try (TorchStreams.Use _ = TorchStreams.use(stream);
                NDManager scope = manager.newSubManager()) {
            NDArray factor = TorchTensors.arrayOf(scope, TorchTensors.borrow(x));
            for (int i = 0; i < 100; i++) {
                factor.matMul(factor).close();
            }
            y.addi(1);
        }
        assertThat(y.getFloat()).isEqualTo(1);
    }

    @Test
    void closedIsClosed() {
        x = manager.ones(new Shape(1));
        try (TorchStreams.Use _ = TorchStreams.use(stream)) {
            TorchGraph graph = capture(TorchGraphTest::twiceAndOne);
            graph.close();
            graph.close();
            assertThatThrownBy(graph::replay).isInstanceOf(IllegalStateException.class);
        }
    }
}
