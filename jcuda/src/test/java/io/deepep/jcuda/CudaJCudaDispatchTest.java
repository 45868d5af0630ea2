package io.deepep.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchResult;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.conformance.RequiredBackends;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * An engine that allocates with JCuda and computes on a JCuda stream, and dispatches through a
 * {@link Buffer}. Ranks share the GPUs there are.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CudaJCudaDispatchTest {
    private static final int NUM_RANKS = 4;
    private static final int TOKENS = 32;
    private static final int HIDDEN = 512;
    private static final int TOPK = 2;
    private static final int EXPERTS = 8;
    private static final int ROUNDS = 3;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    @BeforeEach
    void requireCuda() {
        // Before JCuda: the library sets the driver's environment when it loads the driver.
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
    }

    @Test
    void dispatchesAndCombinesOnAJCudaStream() throws InterruptedException {
        runRanks(
                (communicator, buffer, engine) -> {
                    Stream stream = JCudaStreams.streamOf(engine.device(), engine.stream());
                    CallOptions onStream = CallOptions.sync().on(stream);
                    for (int round = 1; round <= ROUNDS; round++) {
                        engine.writeTokens(round);
                        DispatchResult received = buffer.dispatch(engine.dispatch(), onStream);
                        CombineResult home =
                                buffer.combine(engine.computeExperts(received), onStream);
                        home.event().synchronize(); // also throws what went wrong on the GPU
                        checkDoubled(communicator.rank(), round, engine.read(home.x()));
                    }
                });
    }

    @Test
    void asynchronousCallsAreOrderedByJCudaEvents() throws InterruptedException {
        runRanks(
                (communicator, buffer, engine) -> {
                    for (int round = 1; round <= ROUNDS; round++) {
                        engine.writeTokens(round);
                        DispatchResult received =
                                buffer.dispatch(engine.dispatch(), afterEngine(engine));
                        engine.waitFor(JCudaStreams.cuEventOf(received.event()));
                        CombinePlan back = engine.computeExperts(received);
                        CombineResult home = buffer.combine(back, afterEngine(engine));
                        engine.waitFor(JCudaStreams.cuEventOf(home.event()));
                        home.event().synchronize();
                        checkDoubled(communicator.rank(), round, engine.read(home.x()));
                    }
                });
    }

    /** JCuda can work on the library's own stream too. */
    @Test
    void handlesGoBackToJCuda() throws InterruptedException {
        runRanks(
                (_, buffer, engine) -> {
                    Stream stream = buffer.communicationStream();
                    assertThat(JCudaDriver.cuStreamQuery(JCudaStreams.cuStreamOf(stream))).isZero();
                    assertThat(JCudaStreams.streamOf(engine.device(), engine.stream()).cudaHandle())
                            .isEqualTo(NativePointers.get(engine.stream()));
                    assertThat(NativePointers.address(JCudaTensors.pointerTo(engine.x())))
                            .isEqualTo(engine.x().address());
                });
    }

    @Test
    void whatDoesNotFitIsRefused() throws InterruptedException {
        runRanks(
                (_, _, engine) -> {
                    long tooMany = engine.allocatedElements() + 1;
                    assertThatThrownBy(
                                    () ->
                                            JCudaTensors.tensorOf(
                                                    engine.pointer(), DType.BF16, tooMany))
                            .isInstanceOf(IllegalArgumentException.class);
                });
    }

    @Test
    void streamOfAnotherContextIsRefused() {
        JCudaEngine.withStreamOfAnotherContext(
                stream ->
                        assertThatThrownBy(() -> JCudaStreams.streamOf(Device.cuda(0), stream))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("cuDevicePrimaryCtxRetain"));
    }

    private static CallOptions afterEngine(JCudaEngine engine) {
        return CallOptions.async()
                .after(JCudaStreams.eventOf(engine.device(), engine.recordEvent()));
    }

    /** Each of the token's experts doubled it; experts of one rank share a row. */
    private static void checkDoubled(int rank, int round, Tensor home) {
        for (int t = 0; t < TOKENS; t++) {
            long numRows = JCudaEngine.ranksOf(rank, t, TOPK, EXPERTS / NUM_RANKS, EXPERTS);
            for (int h = 0; h < HIDDEN; h += 37) {
                assertThat(home.getFloat(t, h))
                        .as("rank %d round %d token %d channel %d", rank, round, t, h)
                        .isEqualTo(2 * numRows * JCudaEngine.value(rank, round, t, h));
            }
        }
    }

    private interface Body {
        void run(Communicator communicator, Buffer buffer, JCudaEngine engine);
    }

    private static void runRanks(Body body) throws InterruptedException {
        Config config = Config.recommended(NUM_RANKS).withNumSms(8);
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        Device device = Device.cuda(communicator.rank() % CudaDriver.numDevices());
                        try (JCudaEngine engine =
                                        new JCudaEngine(
                                                device,
                                                communicator.rank(),
                                                new JCudaEngine.Shape(
                                                        TOKENS, HIDDEN, TOPK, EXPERTS, NUM_RANKS));
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .device(device)
                                                .normal(
                                                        NormalLimits.of(
                                                                TOKENS, HIDDEN, TOPK, EXPERTS))
                                                .dispatchConfig(config)
                                                .combineConfig(config)
                                                .timeout(TIMEOUT)
                                                .open()) {
                            body.run(communicator, buffer, engine);
                            // Freeing memory waits for kernels that may wait for this rank.
                            communicator.barrier(TIMEOUT);
                        }
                    });
        }
    }
}
