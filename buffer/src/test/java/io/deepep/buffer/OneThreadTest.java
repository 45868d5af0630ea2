package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.DispatchPlan;
import io.deepep.InProcessGroup;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A buffer has one thread at a time. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OneThreadTest {
    private final CountDownLatch done = new CountDownLatch(1);

    /**
     * The second thread is refused, and does not disturb the first; one after the other is fine.
     */
    @Test
    void twoThreadsAtOnceAreNoticed() throws InterruptedException {
        DispatchPlan plan = SmallExchange.plan().build();
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        try (Buffer buffer = SmallExchange.builder(communicator).open()) {
                            if (communicator.rank() == 0) {
                                expectRefusal(buffer, plan);
                            } else {
                                done.await();
                                buffer.dispatch(plan);
                            }
                            buffer.dispatch(plan);
                        }
                    });
        }
    }

    private void expectRefusal(Buffer buffer, DispatchPlan plan) throws Exception {
        FutureTask<Integer> waits = new FutureTask<>(() -> buffer.dispatch(plan).numRecvTokens());
        Thread other = new Thread(waits, "waits");
        other.start();
        while (other.getState() == Thread.State.NEW || !isWaiting(other)) {
            Thread.onSpinWait();
        }
        IllegalStateException refused =
                catchThrowableOfType(IllegalStateException.class, () -> buffer.dispatch(plan));
        IllegalStateException refusedToo =
                catchThrowableOfType(IllegalStateException.class, buffer::rejoin);
        done.countDown();
        assertThat(refused)
                .hasMessage(
                        "threads waits and %s use the buffer of rank 0 at once; use one thread at a time",
                        Thread.currentThread().getName());
        assertThat(refusedToo).hasMessage(refused.getMessage());
        assertThat(waits.get()).isEqualTo(8);
    }

    private static boolean isWaiting(Thread thread) {
        return thread.getState() == Thread.State.TIMED_WAITING
                || thread.getState() == Thread.State.WAITING;
    }
}
