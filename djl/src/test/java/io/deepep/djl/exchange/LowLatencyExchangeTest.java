package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.djl.Moe;
import io.deepep.djl.TorchDevices;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What low-latency exchanges do that others do not. */
class LowLatencyExchangeTest {
    private static final int NUM_TOKENS = 5;

    /** With FP8, the last block of 128 channels has some that are zeros. */
    @ParameterizedTest
    @CsvSource({"BF16, 200, false", "BF16, 64, true", "FP8, 200, false", "FP8, 200, true"})
    void anyHiddenSizeTravels(Transport transport, int hidden, boolean oneByOne)
            throws InterruptedException {
        LowLatencyLimits limits =
                new LowLatencyLimits(8, ExpertExchange.lowLatencyHidden(hidden), 2, Moe.EXPERTS);
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Device device = TorchDevices.ofRank(communicator.rank());
                        try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .device(TorchDevices.deviceOf(device))
                                                .lowLatency(limits)
                                                .open();
                                ExpertExchange exchange =
                                        ExpertExchange.lowLatency(buffer, transport)) {
                            NDArray x =
                                    Moe.random(manager, communicator.rank(), 1, NUM_TOKENS, hidden);
                            for (int i = 0; i < 3; i++) {
                                NDArray y = twice(exchange, x, oneByOne);
                                assertThat(y.getShape()).isEqualTo(x.getShape());
                                assertThat(Moe.maxError(y, x.add(x)))
                                        .isLessThan(0.07f * Moe.largest(x));
                            }
                        }
                    });
        }
    }

    /** Both of a token's experts, one of each rank, return it. */
    private static NDArray twice(ExpertExchange exchange, NDArray x, boolean oneByOne) {
        NDManager manager = x.getManager();
        long last = x.getShape().get(1);
        NDArray topkIdx =
                manager.create(new long[] {0, Moe.EXPERTS - 1}, new Shape(1, 2))
                        .repeat(0, NUM_TOKENS);
        LocalExperts atOnce =
                rows -> {
                    NDArray values = rows.x();
                    assertThat(values.getShape().get(2)).isEqualTo(last);
                    assertThat(rows.out().getShape()).isEqualTo(values.getShape());
                    return values;
                };
        return exchange.exchange(
                x,
                topkIdx,
                manager.ones(new Shape(NUM_TOKENS, 2), DataType.FLOAT32),
                Moe.EXPERTS,
                oneByOne ? LocalExperts.each((_, rows) -> rows) : atOnce,
                () -> {});
    }
}
