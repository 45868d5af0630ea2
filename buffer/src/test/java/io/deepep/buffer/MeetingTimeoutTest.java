package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Time-outs of what all ranks do together name that call, and the limit that was over. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeetingTimeoutTest {
    private final CountDownLatch done = new CountDownLatch(1);

    private static Buffer.Builder builder(Communicator communicator) {
        return SmallExchange.builder(communicator)
                .timeout(Duration.ofHours(1))
                .startTimeout(Duration.ofSeconds(1));
    }

    private void expect(ThrowingCallable call, String what) {
        assertThat(catchThrowableOfType(DeepEpTimeoutException.class, call))
                .hasMessage(
                        "rank 0 waited more than 1.0 s for rank 1 to %s; check that rank 1 is alive and makes the same"
                                + " calls, or raise startTimeout",
                        what);
        done.countDown();
    }

    @Test
    void whoDoesNotOpen() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            done.await();
                        } else {
                            expect(builder(communicator)::open, "open its buffer");
                        }
                    });
        }
    }

    @Test
    void whoDoesNotRejoin() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        try (Buffer buffer = builder(communicator).open()) {
                            if (communicator.rank() == 1) {
                                done.await();
                            } else {
                                expect(buffer::rejoin, "rejoin");
                            }
                        }
                    });
        }
    }

    /** The group is wrong, whoever else has not come to it. */
    @Test
    void aGroupOfAnotherSize() {
        try (InProcessGroup one = InProcessGroup.of(1);
                InProcessGroup two = InProcessGroup.of(2);
                Buffer buffer = builder(one.communicator(0)).open()) {
            IllegalArgumentException refused =
                    catchThrowableOfType(
                            IllegalArgumentException.class,
                            () -> buffer.admit(two.communicator(0)));
            assertThat(refused)
                    .hasMessageContaining("group is in-process rank 0 of 2, but this is");
            assertThat(refused.getSuppressed())
                    .singleElement()
                    .isInstanceOf(DeepEpTimeoutException.class);
        }
    }
}
