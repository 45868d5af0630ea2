package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Event;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The timeouts only turn a hang into a failure. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostStreamCloseTest {
    private static final int SEEDS = 200;
    private static final int QUEUE_LENGTH = 64;

    @Test
    void closeFinishesWhatIsQueuedThenRefuses() {
        for (int seed = 0; seed < SEEDS; seed++) {
            Random random = new Random(seed);
            int[] ran = {0};
            AtomicReference<Thread> worker = new AtomicReference<>();
            HostStream stream = new HostStream("busy");
            int submitted = 1 + random.nextInt(100);
            for (int i = 0; i < submitted; i++) {
                stream.submit(
                        () -> {
                            worker.set(Thread.currentThread());
                            ran[0]++;
                        });
            }
            stream.close();
            assertThat(ran[0]).as("seed %d", seed).isEqualTo(submitted);
            assertThat(worker.get().isAlive()).isFalse();
            assertThat(worker.get().isDaemon()).isTrue();
            stream.close();
            stream.synchronize();
            assertThat(stream.record().isDone()).isTrue();
            assertThatThrownBy(() -> stream.submit(() -> {}))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage(
                            "host stream busy is closed; keep the buffer or the engine open that it"
                                    + " belongs to");
            assertThatThrownBy(() -> stream.runInline(() -> {}))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> stream.waitFor(Event.completed()))
                    .isInstanceOf(IllegalStateException.class);
        }
    }

    /** Its memory may be gone by the time that it would have its turn. */
    @Test
    void whoWaitsForItsTurnIsRefusedToo() throws InterruptedException {
        CountDownLatch mayEnd = new CountDownLatch(1);
        List<String> refusals = Collections.synchronizedList(new ArrayList<>());
        int[] ran = {0};
        try (HostStream stream = new HostStream("full");
                HostStream other = new HostStream("other")) {
            Event pending = other.submit(() -> HostStreamTest.await(mayEnd));
            stream.submit(() -> HostStreamTest.await(mayEnd));
            for (int i = 0; i < QUEUE_LENGTH; i++) {
                stream.submit(() -> ran[0]++);
            }
            List<Runnable> calls =
                    List.of(
                            () -> stream.submit(() -> ran[0]++),
                            () -> stream.runInline(() -> ran[0]++),
                            () -> stream.waitFor(pending),
                            stream::close);
            List<Thread> callers = new ArrayList<>();
            for (Runnable call : calls) {
                Thread caller = Thread.ofPlatform().start(() -> note(call, refusals));
                callers.add(caller);
                while (caller.getState() != Thread.State.WAITING) {
                    Thread.sleep(1);
                }
            }
            mayEnd.countDown();
            for (Thread caller : callers) {
                caller.join();
            }
        }
        assertThat(refusals)
                .hasSize(3)
                .allSatisfy(refusal -> assertThat(refusal).contains("full is closed"));
        assertThat(ran[0]).isEqualTo(QUEUE_LENGTH);
    }

    private static void note(Runnable call, List<String> refusals) {
        try {
            call.run();
        } catch (IllegalStateException refused) {
            refusals.add(refused.getMessage());
        }
    }
}
