package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.NodeSize;
import io.deepep.testkit.HostTensors;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A rank that makes a different call on its communicator than the rest do is named. */
class OtherCallTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static Buffer.Builder builder(Communicator communicator) {
        return SmallExchange.builder(communicator).timeout(LONG);
    }

    private static void requireNamed(String call, int other, ThrowingCallable action) {
        assertThat(catchThrowableOfType(RankMismatchException.class, action))
                .hasMessage(
                        "%s: rank %s makes a different call on its communicator; every rank must make the same calls in the"
                                + " same order",
                        call, other);
    }

    /** In the middle of open(); a barrier says nothing. */
    @ParameterizedTest
    @CsvSource({"0, ''", "1, ''", "0, something else", "1, something else"})
    void insteadOfOpening(int other, String message) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == other) {
                            NodeSize.agree(communicator, NodeSize.Call.OPEN, 0, "", LONG);
                            communicator.allGather(message.getBytes(StandardCharsets.UTF_8), LONG);
                        } else {
                            requireNamed("open", other, builder(communicator)::open);
                        }
                    });
        }
    }

    @Test
    void insteadOfRejoining() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        try (Buffer buffer = builder(communicator).open()) {
                            if (communicator.rank() == 1) {
                                communicator.allGather(new byte[0], LONG);
                            } else {
                                requireNamed("rejoin", 1, buffer::rejoin);
                            }
                        }
                    });
        }
    }

    /** Nobody has cleaned, or else calls of the two ranks would not meet any more. */
    @Test
    void insteadOfCleaning() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        LowLatencyLimits limits = new LowLatencyLimits(1, 128, 1, 2);
                        Tensor x = HostTensors.allocate(DType.BF16, 1, 128);
                        Tensor topkIdx = HostTensors.allocate(DType.I64, 1, 1);
                        LowLatencyDispatchPlan plan =
                                LowLatencyDispatchPlan.builder(x, topkIdx).build();
                        try (Buffer buffer = builder(communicator).lowLatency(limits).open()) {
                            buffer.lowLatencyDispatch(plan);
                            if (communicator.rank() == 1) {
                                requireNamed("rejoin", 0, buffer::rejoin);
                            } else {
                                requireNamed("clean", 1, buffer::cleanLowLatencyBuffer);
                            }
                            buffer.lowLatencyDispatch(plan);
                        }
                    });
        }
    }
}
