package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.LambdaBlock;
import ai.djl.training.ParameterStore;
import io.deepep.djl.exchange.ExchangeCountersTest;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.ExpertGate;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The layer over ranks against the same layer computed densely in FLOAT32. */
class ExpertParallelMoETest {
    /** Of the largest output: the rounding of tokens and results to BF16, or of tokens to FP8. */
    private static final float BF16_ERROR = 0.01f;

    private static final float FP8_ERROR = 0.08f;

    @ParameterizedTest
    @CsvSource({
        "1, BF16, false",
        "2, BF16, false",
        "4, BF16, false",
        "4, FP8, false",
        "1, BF16, true",
        "4, BF16, true",
        "4, FP8, true"
    })
    void equalsTheDenseLayer(int numRanks, Transport transport, boolean lowLatency)
            throws InterruptedException {
        float allowed = transport == Transport.FP8 ? FP8_ERROR : BF16_ERROR;
        Moe.run(
                numRanks,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = Moe.open(buffer, transport, lowLatency)) {
                        ExpertGate gate = Moe.softmaxGate(manager);
                        ExpertParallelMoE moe = layer(exchange, gate, manager);
                        // Different numbers of tokens, changing, rank 1 without any at first.
                        for (int numTokens : new int[] {16, 16, 5}) {
                            int mine =
                                    communicator.rank() == 1 && numTokens == 16
                                            ? 0
                                            : numTokens + communicator.rank();
                            NDArray x = Moe.tokens(manager, communicator.rank(), mine);
                            NDArray y = Moe.forward(moe, x);
                            assertThat(y.getShape()).isEqualTo(x.getShape());
                            if (mine > 0) {
                                NDArray expected = Moe.dense(gate, x, manager);
                                assertThat(Moe.maxError(y, expected))
                                        .as("rank %d of %d", communicator.rank(), numRanks)
                                        .isLessThan(allowed * Moe.largest(expected));
                            }
                        }
                    }
                });
    }

    @Test
    void sharedExpertAndOtherShapes() throws InterruptedException {
        Moe.withExchange(
                2,
                (communicator, exchange, manager) -> {
                    ExpertGate gate = Moe.softmaxGate(manager);
                    SwiGluExpert shared = Moe.expert(manager, 77);
                    ExpertParallelMoE moe =
                            ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                                    .gate(gate)
                                    .experts(e -> Moe.expert(manager, e))
                                    .sharedExpert(shared)
                                    .build();
                    NDArray x = Moe.tokens(manager, communicator.rank(), 12);
                    NDArray expected = Moe.dense(gate, x, manager).add(Moe.forward(shared, x));
                    NDArray batched = Moe.forward(moe, x.reshape(3, 4, Moe.HIDDEN));
                    assertThat(batched.getShape()).isEqualTo(new Shape(3, 4, Moe.HIDDEN));
                    assertThat(Moe.maxError(batched.reshape(12, Moe.HIDDEN), expected))
                            .isLessThan(BF16_ERROR * Moe.largest(expected));
                });
    }

    @Test
    void float16TokensStayFloat16() throws InterruptedException {
        Moe.withExchange(
                2,
                (communicator, exchange, manager) -> {
                    Block doubling = new LambdaBlock(rows -> new NDList(rows.head().mul(2)));
                    ExpertParallelMoE moe =
                            ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                                    .gate(Moe.softmaxGate(manager))
                                    .experts(_ -> doubling)
                                    .build();
                    NDArray x =
                            Moe.tokens(manager, communicator.rank(), 8)
                                    .round()
                                    .toType(DataType.FLOAT16, false);
                    NDArray y = Moe.forward(moe, x);
                    assertThat(y.getDataType()).isEqualTo(DataType.FLOAT16);
                    // The weights sum to 1, so all experts together double.
                    assertThat(Moe.maxError(y, x.mul(2))).isLessThan(BF16_ERROR * Moe.largest(x));
                });
    }

    @Test
    void partsThatDoNotFitAreRefused() throws InterruptedException {
        Moe.withExchange(
                2,
                (_, exchange, manager) -> {
                    assertThatThrownBy(() -> ExpertParallelMoE.builder(exchange, 7))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("numExperts=7")
                            .hasMessageContaining("numRanks=2");
                    assertThatThrownBy(
                                    () ->
                                            ExpertParallelMoE.builder(exchange, 16)
                                                    .gate(Moe.softmaxGate(manager)))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("numExperts=8")
                            .hasMessageContaining("numExperts=16");
                    ExpertParallelMoE moe = layer(exchange, Moe.softmaxGate(manager), manager);
                    NDArray x = Moe.tokens(manager, 0, 4);
                    ParameterStore store = new ParameterStore(manager, false);
                    assertThatThrownBy(() -> moe.forward(store, new NDList(x), true))
                            .isInstanceOf(UnsupportedOperationException.class)
                            .hasMessageContaining("training=false");
                    assertThatThrownBy(() -> Moe.forward(moe, x.toType(DataType.FLOAT64, false)))
                            .isInstanceOf(IllegalArgumentException.class);
                    for (Shape shape : List.of(new Shape(), new Shape(3, 0))) {
                        assertThatThrownBy(() -> Moe.forward(moe, manager.zeros(shape)))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("input has shape " + shape);
                    }
                });
    }

    /** All ranks learn what one did wrong, and the next exchange works. */
    @Test
    void failureIsCountedAndOver() throws InterruptedException {
        Moe.withExchange(
                2,
                (communicator, exchange, manager) -> {
                    NDArray x = Moe.tokens(manager, communicator.rank(), 4);
                    NDArray weights = manager.ones(new Shape(4, 1));
                    NDArray good = manager.zeros(new Shape(4, 1), DataType.INT64);
                    NDArray bad = good.add(communicator.rank() == 0 ? Moe.EXPERTS : 0);
                    LocalExperts identity = LocalExperts.each((_, rows) -> rows);
                    assertThatThrownBy(() -> run(exchange, x, bad, weights, identity))
                            .hasMessageContaining("rank 0");
                    assertThat(ExchangeCountersTest.read(communicator.rank(), "Healthy"))
                            .isEqualTo(false);
                    NDArray y = run(exchange, x, good, weights, identity);
                    assertThat(Moe.maxError(x, y)).isLessThan(BF16_ERROR * Moe.largest(x));
                    assertThat(ExchangeCountersTest.read(communicator.rank(), "Healthy"))
                            .isEqualTo(true);
                    assertThat(ExchangeCountersTest.read(communicator.rank(), "Failures"))
                            .isEqualTo(1L);
                });
    }

    private static NDArray run(
            ExpertExchange exchange,
            NDArray x,
            NDArray topkIdx,
            NDArray topkWeights,
            LocalExperts experts) {
        return exchange.exchange(x, topkIdx, topkWeights, Moe.EXPERTS, experts, () -> {});
    }

    static ExpertParallelMoE layer(ExpertExchange exchange, ExpertGate gate, NDManager manager) {
        return ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                .gate(gate)
                .experts(e -> Moe.expert(manager, e))
                .build();
    }
}
