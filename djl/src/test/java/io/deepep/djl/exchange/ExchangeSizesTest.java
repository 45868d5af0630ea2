package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.Moe;
import io.deepep.djl.script.Operators;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sizes that exchanges take or refuse. */
class ExchangeSizesTest {
    private static final int NUM_TOKENS = 5;

    /** Experts that return their rows. */
    enum Experts implements LocalExperts {
        ONE_BY_ONE {
            @Override
            public NDArray run(ExpertRows rows) {
                return LocalExperts.each((_, ofOne) -> ofOne).run(rows);
            }
        },
        ALL_ROWS {
            @Override
            public NDArray run(ExpertRows rows) {
                if (rows.areInSlots()) {
                    assertThat(rows.out().getShape()).isEqualTo(rows.x().getShape());
                }
                return rows.x();
            }
        },
        PACKED {
            @Override
            public NDArray run(ExpertRows rows) {
                NDArray ends = Operators.endsOf(rows.inUse());
                long numSlots = rows.out().getShape().get(1);
                NDList use = Operators.slotsInUse(rows.inUse(), ends, numSlots, rows.mostInUse());
                NDArray packed = rows.pack(use.get(0));
                assertThat(packed.getShape().get(0)).isEqualTo(rows.mostInUse());
                rows.unpack(packed, use.get(0));
                return rows.out();
            }
        }
    }

    /**
     * With FP8, the last block of 128 channels has some that are zeros. Numbers next to a block's
     * largest, 448 as FP8, are up to 16 off, and here they are doubled.
     */
    @ParameterizedTest
    @CsvSource({
        "true, BF16, 200, ALL_ROWS, 0.01",
        "true, BF16, 64, ONE_BY_ONE, 0.01",
        "true, BF16, 136, PACKED, 0.01",
        "true, FP8, 200, ALL_ROWS, 0.07",
        "true, FP8, 200, ONE_BY_ONE, 0.07",
        "true, FP8, 200, PACKED, 0.07",
        "true, FP8, 256, PACKED, 0.07",
        "false, BF16, 200, ALL_ROWS, 0.01",
        "false, BF16, 64, ONE_BY_ONE, 0.01",
        "false, FP8, 64, ALL_ROWS, 0.08",
        "false, FP8, 200, ALL_ROWS, 0.08",
        "false, FP8, 200, ONE_BY_ONE, 0.08",
        "false, FP8, 256, ONE_BY_ONE, 0.08"
    })
    void anyHiddenSizeTravels(
            boolean lowLatency, Transport transport, int hidden, Experts experts, float bound)
            throws InterruptedException {
        Moe.run(
                2,
                hidden,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = Moe.open(buffer, transport, lowLatency)) {
                        NDArray x = Moe.random(manager, communicator.rank(), 1, NUM_TOKENS, hidden);
                        for (int i = 0; i < 3; i++) {
                            NDArray y = twice(exchange, x, experts);
                            assertThat(y.getShape()).isEqualTo(x.getShape());
                            assertThat(Moe.maxError(y, x.add(x)))
                                    .isLessThan(bound * Moe.largest(x));
                        }
                    }
                });
    }

    /** A token goes to an expert of each rank. */
    private static NDArray twice(ExpertExchange exchange, NDArray x, Experts experts) {
        NDManager manager = x.getManager();
        NDArray topkIdx =
                manager.create(new long[] {0, Moe.EXPERTS - 1}, new Shape(1, 2))
                        .repeat(0, NUM_TOKENS);
        NDArray topkWeights = manager.ones(new Shape(NUM_TOKENS, 2), DataType.FLOAT32);
        return exchange.exchange(x, topkIdx, topkWeights, Moe.EXPERTS, experts, () -> {});
    }

    @ParameterizedTest
    @CsvSource({"true, BF16", "true, FP8", "false, BF16", "false, FP8"})
    void otherHiddenSizesAreRefusedBeforeACall(boolean lowLatency, Transport transport)
            throws InterruptedException {
        Moe.run(
                2,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = Moe.open(buffer, transport, lowLatency)) {
                        NDArray odd = Moe.random(manager, communicator.rank(), 1, NUM_TOKENS, 20);
                        assertThatThrownBy(() -> twice(exchange, odd, Experts.ALL_ROWS))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("hidden=20 is not a multiple of 8");
                        NDArray x = Moe.tokens(manager, communicator.rank(), NUM_TOKENS);
                        NDArray y = twice(exchange, x, Experts.ALL_ROWS);
                        assertThat(Moe.maxError(y, x.add(x))).isLessThan(0.08f * Moe.largest(x));
                    }
                });
    }

    /** The rows would be those of the experts that the buffer has on this rank. */
    @ParameterizedTest
    @ValueSource(ints = {Moe.EXPERTS / 2, 2 * Moe.EXPERTS})
    void otherNumbersOfExpertsAreRefused(int numExperts) throws InterruptedException {
        Moe.run(
                2,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange =
                            ExpertExchange.lowLatency(buffer, Transport.BF16)) {
                        NDArray x = Moe.tokens(manager, communicator.rank(), NUM_TOKENS);
                        NDArray topkIdx =
                                manager.zeros(new Shape(NUM_TOKENS, Moe.TOPK), DataType.INT64);
                        NDArray topkWeights = manager.ones(new Shape(NUM_TOKENS, Moe.TOPK));
                        assertThatThrownBy(
                                        () ->
                                                exchange.exchange(
                                                        x,
                                                        topkIdx,
                                                        topkWeights,
                                                        numExperts,
                                                        Experts.ALL_ROWS,
                                                        () -> {}))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("numExperts=" + numExperts)
                                .hasMessageContaining("have numExperts=" + Moe.EXPERTS);
                        NDArray y = twice(exchange, x, Experts.ALL_ROWS);
                        assertThat(Moe.maxError(y, x.add(x))).isLessThan(0.01f * Moe.largest(x));
                    }
                });
    }
}
