package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineResult;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.DispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Stream;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** Streams of engines that keep a part of the GPU for communication. */
@BackendSuite(only = "cuda")
class CudaGreenContextTest {
    private static final int NUM_RANKS = 2;
    private static final int NUM_SMS = 8;
    private static final int ROUNDS = 3;
    private static final LowLatencyShape LOW_LATENCY =
            new LowLatencyShape(1, NUM_RANKS, 16, 384, 2, 6);
    private static final NormalWorld NORMAL =
            NormalWorld.bf16(RoutingSpec.of(NUM_RANKS, 64, 16, 4).withSeed(5), 512);

    /** Each rank has a green context; those of ranks on one GPU have different multiprocessors. */
    private static void run(BiConsumer<Communicator, GreenContext> body) {
        Ranks.runBare(
                BufferTestBackends.CUDA,
                Ranks.topology(1, NUM_RANKS),
                communicator -> {
                    Device device = BufferTestBackends.CUDA.device(communicator.rank(), NUM_RANKS);
                    CudaContext context = CudaContext.shared(CudaDevice.of(device.index()));
                    try (GreenContext part =
                            new GreenContext(context, communicator.rank(), NUM_SMS)) {
                        body.accept(communicator, part);
                    }
                });
    }

    private static Buffer.Builder builder(Communicator communicator) {
        return Ranks.builder(BufferTestBackends.CUDA, communicator, Ranks.topology(1, NUM_RANKS));
    }

    /** The same with a buffer, whose options may look at the part. */
    private static void run(
            BiConsumer<Buffer.Builder, GreenContext> options,
            BiConsumer<RankContext, GreenContext> body) {
        run(
                (communicator, part) -> {
                    Buffer.Builder builder = builder(communicator);
                    options.accept(builder, part);
                    try (Buffer buffer = builder.open()) {
                        body.accept(
                                new RankContext(BufferTestBackends.CUDA, communicator, buffer),
                                part);
                    }
                });
    }

    /** By default, calls take as many multiprocessors as the part leaves to each rank. */
    @Test
    void normalCallsRunInThePart() {
        run(
                (builder, part) ->
                        builder.normal(NORMAL.limits()).communicationStream(part.stream()),
                (context, part) -> {
                    NormalRank rank = new NormalRank(context, NORMAL);
                    CudaStream stream = (CudaStream) context.buffer().communicationStream();
                    assertThat(stream.numSms()).isEqualTo(NUM_SMS);
                    for (int i = 0; i < ROUNDS; i++) {
                        exchange(rank, CallOptions.sync().on(part.stream()));
                    }
                    int tooMany = 2 * NUM_SMS;
                    Config config = Config.recommended(NUM_RANKS).withNumSms(tooMany);
                    assertThatThrownBy(() -> rank.dispatch(rank.plan().config(config)))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("numSms=" + tooMany);
                });
    }

    @Test
    void lowLatencyCallsRunInThePart() {
        run(
                (builder, part) ->
                        builder.lowLatency(LOW_LATENCY.limits()).communicationStream(part.stream()),
                (context, _) -> {
                    LowLatencyRank rank = new LowLatencyRank(context, LOW_LATENCY.world(3));
                    for (int i = 0; i < ROUNDS; i++) {
                        rank.roundTrip(LowLatencyFormat.FP8);
                    }
                });
    }

    /** The engine computes in the part, and the buffer has a stream of its own. */
    @Test
    void anEngineComputesInThePart() {
        run(
                (builder, _) -> builder.normal(NORMAL.limits()),
                (context, part) ->
                        exchange(
                                new NormalRank(context, NORMAL),
                                CallOptions.sync().on(part.stream())));
    }

    /** The part has a default stream of its own, which the handle does not tell from the GPU's. */
    @Test
    void theDefaultStreamOfAPartIsRefused() {
        run(
                (communicator, part) -> {
                    Device device = part.stream().device();
                    part.makeCurrent();
                    assertThatThrownBy(() -> Stream.cuda(device, 0))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("is not the primary one of " + device);
                    part.stream().synchronize(); // which makes the primary one current
                    Stream.cuda(device, 0).synchronize();
                });
    }

    private static void exchange(NormalRank rank, CallOptions options) {
        Buffer buffer = rank.context().buffer();
        DispatchResult received = buffer.dispatch(rank.plan().build(), options);
        CombineResult home = buffer.combine(rank.home(received.handle()).build(), options);
        options.computeStream().synchronize();
        rank.verify(received);
        rank.verify(home);
    }

    /** Blocks that wait for each other would not be there at once. */
    @Test
    void moreThanThePartHasIsRefused() {
        Config config = Config.recommended(NUM_RANKS).withNumSms(2 * NUM_SMS);
        run(
                (communicator, part) -> {
                    Buffer.Builder builder =
                            builder(communicator)
                                    .normal(NORMAL.limits())
                                    .communicationStream(part.stream())
                                    .dispatchConfig(config);
                    assertThatThrownBy(builder::open)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("dispatchConfig needs " + config.numSms())
                            .hasMessageContaining(
                                    " with %s; lower Config.numSms".formatted(NUM_SMS));
                });
    }
}
