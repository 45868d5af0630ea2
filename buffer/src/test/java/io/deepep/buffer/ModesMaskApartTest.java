package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.LogMessages;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** What a mask of one mode's time-out does in the other, as {@link Buffer#updateMask} says. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Isolated("it hears what all buffers log")
class ModesMaskApartTest {
    private static final int LOST = 2;
    private static final Duration SHORT = Duration.ofMillis(500);

    /** A call that waited for so long would not end within the test. */
    private static final Duration LONG = Duration.ofHours(1);

    private final Tensor x = Tensor.allocate(Arena.ofShared(), DType.BF16, 4, 128);
    private final Tensor topkIdx = Tensor.allocate(Arena.ofShared(), DType.I64, 4, 1);
    private final CountDownLatch done = new CountDownLatch(LOST);

    /** Those who are not lost begin together, or one would be taken for lost, too. */
    private final CyclicBarrier begin = new CyclicBarrier(LOST);

    private void awaitOther() {
        try {
            begin.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new IllegalStateException(e);
        }
    }

    private void lowLatency(Buffer buffer, Duration limit) {
        awaitOther();
        buffer.lowLatencyDispatch(
                LowLatencyDispatchPlan.builder(x, topkIdx).timeout(limit).build());
    }

    private void normal(Buffer buffer, Duration limit) {
        awaitOther();
        buffer.dispatch(DispatchPlan.builder(x).topk(topkIdx, null, 3).timeout(limit).build());
    }

    /** Each rank's plan is its own, the tensors are only read. */
    private void withoutRank(Consumer<Buffer> calls) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(LOST + 1)) {
            group.run(
                    communicator -> {
                        try (Buffer buffer = open(communicator)) {
                            if (communicator.rank() == LOST) {
                                done.await();
                            } else {
                                calls.accept(buffer);
                                assertThat(buffer.queryMask()).containsExactly(0, 0, 1);
                                done.countDown();
                            }
                        }
                    });
        }
    }

    private static Buffer open(Communicator communicator) {
        return Buffer.builder(communicator)
                .timeout(Duration.ofSeconds(10))
                .maskTimedOutRanks(true)
                .normal(NormalLimits.of(4, 128, 1, 3))
                .lowLatency(new LowLatencyLimits(4, 128, 1, 3))
                .open();
    }

    @Test
    void normalModeWaitsOnceMore() throws InterruptedException {
        withoutRank(
                buffer -> {
                    lowLatency(buffer, SHORT);
                    assertThatThrownBy(() -> normal(buffer, SHORT))
                            .isInstanceOf(DeepEpTimeoutException.class);
                    normal(buffer, LONG);
                });
    }

    @Test
    void normalModeLeavesItOutIfAllSaySo() throws InterruptedException {
        withoutRank(
                buffer -> {
                    lowLatency(buffer, SHORT);
                    buffer.updateMask(LOST, true);
                    normal(buffer, LONG);
                });
    }

    @Test
    void lowLatencyModeLeavesOutWhomNormalModeLost() throws InterruptedException {
        withoutRank(
                buffer -> {
                    assertThatThrownBy(() -> normal(buffer, SHORT))
                            .isInstanceOf(DeepEpTimeoutException.class);
                    lowLatency(buffer, LONG);
                });
    }

    @Test
    void whomNormalModeLostIsLoggedOnce() throws InterruptedException {
        LogMessages log = new LogMessages(RankMasks.class);
        try (log) {
            withoutRank(
                    buffer -> {
                        assertThatThrownBy(() -> normal(buffer, SHORT))
                                .isInstanceOf(DeepEpTimeoutException.class);
                        normal(buffer, LONG);
                    });
        }
        assertThat(log.messages())
                .containsExactlyInAnyOrder(
                        "rank 0 masks rank 2: it was lost in a call of normal mode",
                        "rank 1 masks rank 2: it was lost in a call of normal mode");
    }
}
