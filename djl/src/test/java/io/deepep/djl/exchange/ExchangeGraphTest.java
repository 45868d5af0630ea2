package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.Graph;
import io.deepep.djl.Moe;
import io.deepep.djl.TorchTensors;
import java.time.Duration;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Exchanges in a graph, where there is a GPU. */
@EnabledIf("io.deepep.djl.Moe#hasGpu")
class ExchangeGraphTest {
    private static final int NUM_TOKENS = 6;
    private static final int NUM_RANKS = 2;
    private static final int NUM_LOCAL = Moe.EXPERTS / NUM_RANKS;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    /** Tokens and their routing, always in the same memory. */
    private static final class Layer {
        final NDManager manager;
        final ExpertExchange exchange;
        final LocalExperts experts;
        final NDArray x;
        final NDArray topkIdx;
        final NDArray topkWeights;
        NDArray y;

        Layer(NDManager manager, ExpertExchange exchange) {
            this.manager = manager;
            this.exchange = exchange;
            NDArray factors = manager.create(factors(exchange.topology().rank()));
            experts = rows -> rows.x().mul(factors.reshape(-1, 1, 1));
            x = manager.zeros(new Shape(NUM_TOKENS, Moe.HIDDEN));
            topkIdx =
                    manager.create(
                            new long[NUM_TOKENS * Moe.TOPK], new Shape(NUM_TOKENS, Moe.TOPK));
            topkWeights = manager.zeros(new Shape(NUM_TOKENS, Moe.TOPK));
        }

        private static float[] factors(int rank) {
            float[] factors = new float[NUM_LOCAL];
            for (int e = 0; e < NUM_LOCAL; e++) {
                factors[e] = 1 + rank * NUM_LOCAL + e;
            }
            return factors;
        }

        /** Another exchange. */
        void load(int seed) {
            Random random = new Random(seed);
            TorchTensors.cast(Moe.random(manager, seed, 1, NUM_TOKENS, Moe.HIDDEN), x);
            TorchTensors.cast(
                    Moe.random(manager, seed + 1, 1, NUM_TOKENS, Moe.TOPK).abs(), topkWeights);
            long[] experts =
                    IntStream.range(0, NUM_TOKENS)
                            .flatMap(_ -> random.ints(0, Moe.EXPERTS).distinct().limit(Moe.TOPK))
                            .asLongStream()
                            .toArray();
            TorchTensors.cast(manager.create(experts, topkIdx.getShape()), topkIdx);
        }

        void run() {
            y = run(experts);
        }

        NDArray run(LocalExperts others) {
            return exchange.exchange(x, topkIdx, topkWeights, Moe.EXPERTS, others, () -> {});
        }
    }

    @ParameterizedTest
    @EnumSource
    void replaysExchangeWhatIsThere(Transport transport) throws InterruptedException {
        Moe.withCapturableExchange(
                NUM_RANKS,
                transport,
                (communicator, exchange, manager) -> {
                    int rank = communicator.rank();
                    Layer layer = new Layer(manager, exchange);
                    layer.load(rank);
                    layer.run();
                    layer.run();
                    try (Graph graph = exchange.capture(manager.getDevice(), layer::run)) {
                        communicator.barrier(TIMEOUT);
                        NDArray replayed = layer.y;
                        assertThat(ExchangeCountersTest.read(rank, "Exchanges")).isEqualTo(2L);
                        for (int i = 1; i <= 20; i++) {
                            layer.load(100 * i + rank);
                            graph.replay();
                            graph.replay();
                            exchange.awaitLast();
                            layer.run();
                            exchange.awaitLast();
                            assertThat(Moe.largest(layer.y)).isPositive();
                            assertThat(Moe.maxError(replayed, layer.y)).isZero();
                            assertThat(ExchangeCountersTest.read(rank, "Exchanges"))
                                    .isEqualTo(2L + 3L * i);
                        }
                        assertThat(ExchangeCountersTest.read(rank, "TokensSent"))
                                .isEqualTo(62L * NUM_TOKENS);
                    }
                    long received = (long) ExchangeCountersTest.read(rank, "RowsReceived");
                    byte[] sent = {(byte) (received >> 8), (byte) received};
                    assertThat(
                                    communicator.allGather(sent, TIMEOUT).stream()
                                            .mapToInt(of -> ((of[0] & 255) << 8) | (of[1] & 255))
                                            .sum())
                            .isEqualTo(62 * NUM_TOKENS * Moe.TOPK * NUM_RANKS);
                });
    }

    /** Then all ranks go on without. */
    @Test
    void expertsThatAskForCountsAreRefused() throws InterruptedException {
        Moe.withCapturableExchange(
                NUM_RANKS,
                Transport.BF16,
                (communicator, exchange, manager) -> {
                    Layer layer = new Layer(manager, exchange);
                    LocalExperts asking = LocalExperts.each((_, rows) -> rows);
                    layer.load(communicator.rank());
                    assertThatThrownBy(
                                    () ->
                                            exchange.capture(
                                                    manager.getDevice(),
                                                    () -> {
                                                        layer.run();
                                                        layer.run(asking);
                                                    }))
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining("once before the capture");
                    layer.run();
                    NDArray before = layer.y;
                    layer.run();
                    assertThatThrownBy(
                                    () ->
                                            exchange.capture(
                                                    manager.getDevice(), () -> layer.run(asking)))
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining("compute all slots");
                    for (int i = 0; i < 4; i++) {
                        layer.run();
                    }
                    exchange.awaitLast();
                    assertThat(Moe.maxError(before, layer.y)).isZero();
                    assertThat(ExchangeCountersTest.read(communicator.rank(), "Exchanges"))
                            .isEqualTo(6L);
                });
    }
}
