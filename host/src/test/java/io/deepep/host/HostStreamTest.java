package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.deepep.Event;
import io.deepep.Graph;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The timeouts only turn a hang into a failure. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostStreamTest {
    private static final int SEEDS = 200;

    @Test
    void workOfOneCallerRunsInItsOrderInlineOrNot() {
        for (int seed = 0; seed < SEEDS; seed++) {
            Random random = new Random(seed);
            List<Integer> ran = Collections.synchronizedList(new ArrayList<>());
            List<Integer> expected = new ArrayList<>();
            try (HostStream stream = new HostStream("order")) {
                // Longer than the queue, so that submitting has to wait too.
                for (int i = 0; i < 150; i++) {
                    int number = i;
                    expected.add(number);
                    if (random.nextInt(4) == 0) {
                        stream.runInline(() -> ran.add(number));
                        assertThat(ran).as("seed %d", seed).hasSize(number + 1);
                    } else {
                        stream.submit(() -> ran.add(number));
                    }
                }
                stream.synchronize();
                assertThat(ran).as("seed %d", seed).isEqualTo(expected);
            }
        }
    }

    @Test
    void callersOnManyThreadsNeverOverlapAndKeepTheirOwnOrder() throws InterruptedException {
        for (int seed = 0; seed < SEEDS / 4; seed++) {
            int[] inside = {0};
            int[] total = {0};
            int[] last = new int[3];
            AtomicReference<String> wrong = new AtomicReference<>();
            try (HostStream stream = new HostStream("many")) {
                List<Thread> callers = new ArrayList<>();
                for (int caller = 0; caller < last.length; caller++) {
                    int me = caller;
                    Random random = new Random(31L * seed + caller);
                    callers.add(
                            Thread.ofPlatform()
                                    .start(
                                            () -> {
                                                for (int i = 1; i <= 100; i++) {
                                                    int number = i;
                                                    // Plain variables: only the stream's order
                                                    // keeps this exact.
                                                    Runnable work =
                                                            () -> {
                                                                if (++inside[0] != 1
                                                                        || last[me] != number - 1) {
                                                                    wrong.set(
                                                                            "caller "
                                                                                    + me
                                                                                    + " number "
                                                                                    + number
                                                                                    + " after "
                                                                                    + last[me]);
                                                                }
                                                                last[me] = number;
                                                                total[0]++;
                                                                inside[0]--;
                                                            };
                                                    if (random.nextBoolean()) {
                                                        stream.runInline(work);
                                                    } else {
                                                        stream.submit(work);
                                                    }
                                                }
                                            }));
                }
                for (Thread caller : callers) {
                    caller.join();
                }
                stream.synchronize();
            }
            assertThat(wrong.get()).as("seed %d", seed).isNull();
            assertThat(total[0]).isEqualTo(300);
        }
    }

    @Test
    void failureReachesItsOwnEventAsTheSameObject() {
        try (HostStream stream = new HostStream("failure")) {
            RuntimeException failure = new UnsupportedOperationException("planned");
            AssertionError error = new AssertionError("planned");
            HostEvent first =
                    stream.submit(
                            () -> {
                                throw failure;
                            });
            HostEvent second =
                    stream.submit(
                            () -> {
                                throw error;
                            });
            HostEvent third = stream.submit(() -> {});
            assertThatThrownBy(first::synchronize).isSameAs(failure);
            assertThatThrownBy(first::synchronize).isSameAs(failure);
            assertThatThrownBy(second::synchronize).isSameAs(error);
            third.synchronize();
            stream.record().synchronize();
            stream.synchronize();
            assertThat(first.isDone()).isTrue();
        }
    }

    @Test
    void submittedWorkWaitsForTheInlineWorkBeforeIt() {
        try (HostStream stream = new HostStream("turn")) {
            AtomicReference<Thread> worker = new AtomicReference<>();
            stream.submit(() -> worker.set(Thread.currentThread())).synchronize();
            for (int round = 0; round < 200; round++) {
                AtomicBoolean ran = new AtomicBoolean();
                AtomicBoolean ranEarly = new AtomicBoolean();
                stream.runInline(
                        () -> {
                            stream.submit(() -> ran.set(true));
                            // Gives the stream's thread the processor until it waits again.
                            do {
                                Thread.yield();
                            } while (worker.get().getState() != Thread.State.WAITING);
                            ranEarly.set(ran.get());
                        });
                stream.synchronize();
                assertThat(ranEarly.get()).as("round %d", round).isFalse();
                assertThat(ran.get()).isTrue();
            }
        }
    }

    @Test
    void inlineFailureReachesTheCallerAndTheStreamGoesOn() {
        try (HostStream stream = new HostStream("inline")) {
            RuntimeException failure = new UnsupportedOperationException("planned");
            assertThatThrownBy(
                            () ->
                                    stream.runInline(
                                            () -> {
                                                throw failure;
                                            }))
                    .isSameAs(failure);
            List<String> ran = new ArrayList<>();
            stream.runInline(() -> ran.add(Thread.currentThread().getName()));
            assertThat(ran).containsExactly(Thread.currentThread().getName());
        }
    }

    @Test
    void recordedEventCoversExactlyTheWorkBeforeIt() throws InterruptedException {
        try (HostStream stream = new HostStream("record")) {
            assertThat(stream.record().isDone()).isTrue();
            CountDownLatch firstMayEnd = new CountDownLatch(1);
            CountDownLatch secondMayEnd = new CountDownLatch(1);
            stream.submit(() -> await(firstMayEnd));
            Event between = stream.record();
            HostEvent second = stream.submit(() -> await(secondMayEnd));
            assertThat(between.isDone()).isFalse();
            firstMayEnd.countDown();
            between.synchronize();
            assertThat(between.isDone()).isTrue();
            assertThat(second.isDone()).isFalse();
            secondMayEnd.countDown();
            second.synchronize();
        }
    }

    @Test
    void waitForOrdersTwoStreamsUnderManySeeds() {
        for (int seed = 0; seed < SEEDS; seed++) {
            Random random = new Random(seed);
            int[] counter = {0};
            List<String> wrong = Collections.synchronizedList(new ArrayList<>());
            try (HostStream one = new HostStream("one");
                    HostStream two = new HostStream("two")) {
                HostStream from = one;
                HostStream to = two;
                for (int i = 0; i < 60; i++) {
                    int expected = i;
                    // The counter is a plain variable: hand-over from stream to stream has to make
                    // it visible.
                    Runnable work =
                            () -> {
                                if (counter[0]++ != expected) {
                                    wrong.add("step " + expected);
                                }
                            };
                    Event done =
                            random.nextBoolean() ? from.submit(work) : submitThenRecord(from, work);
                    if (random.nextBoolean()) {
                        to.waitFor(done);
                        HostStream swap = from;
                        from = to;
                        to = swap;
                    }
                }
                one.synchronize();
                two.synchronize();
                assertThat(wrong).as("seed %d", seed).isEmpty();
                assertThat(counter[0]).isEqualTo(60);
            }
        }
    }

    private static Event submitThenRecord(HostStream stream, Runnable work) {
        stream.submit(work);
        return stream.record();
    }

    @Test
    void failureOfAnAwaitedEventStaysWhereItWas() {
        try (HostStream one = new HostStream("one");
                HostStream two = new HostStream("two")) {
            CountDownLatch mayFail = new CountDownLatch(1);
            HostEvent failing =
                    one.submit(
                            () -> {
                                await(mayFail);
                                throw new UnsupportedOperationException("planned");
                            });
            two.waitFor(failing);
            HostEvent after = two.submit(() -> {});
            assertThat(after.isDone()).isFalse();
            mayFail.countDown();
            after.synchronize();
            assertThatThrownBy(failing::synchronize)
                    .isInstanceOf(UnsupportedOperationException.class);
        }
    }

    @Test
    void interruptedWaitersSayItAndKeepTheirFlag() {
        CountDownLatch mayEnd = new CountDownLatch(1);
        try (HostStream stream = new HostStream("interrupt")) {
            HostEvent busy = stream.submit(() -> await(mayEnd));
            List<Runnable> waits =
                    List.of(
                            busy::synchronize,
                            stream::synchronize,
                            () -> stream.runInline(() -> {}),
                            () -> fill(stream),
                            stream::close);
            for (Runnable wait : waits) {
                Thread.currentThread().interrupt();
                assertThatThrownBy(wait::run)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("interrupted while waiting for");
                assertThat(Thread.interrupted()).isTrue();
            }
            mayEnd.countDown();
        }
    }

    private static void fill(HostStream stream) {
        for (int i = 0; i < 1000; i++) {
            stream.submit(() -> {});
        }
    }

    @Test
    void interruptLeftByWorkDoesNotReachTheNext() {
        try (HostStream stream = new HostStream("flag")) {
            stream.submit(() -> Thread.currentThread().interrupt());
            boolean[] interrupted = {true};
            stream.submit(() -> interrupted[0] = Thread.currentThread().isInterrupted())
                    .synchronize();
            assertThat(interrupted[0]).isFalse();
        }
    }

    @Test
    void workThatWaitsForItsOwnStreamIsRefused() {
        try (HostStream stream = new HostStream("self")) {
            for (Runnable wait :
                    List.<Runnable>of(
                            stream::synchronize, () -> stream.runInline(() -> {}), stream::close)) {
                HostEvent event = stream.submit(wait);
                assertThatThrownBy(event::synchronize)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("waits for the stream itself");
                assertThatThrownBy(() -> stream.runInline(wait))
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("waits for the stream itself");
            }
        }
    }

    @Test
    void inlineWorkMakesNoGarbage() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        try (HostStream stream = new HostStream("garbage")) {
            int[] count = {0};
            Runnable work = () -> count[0]++;
            stream.runInline(work);
            long least = Long.MAX_VALUE;
            for (int round = 0; round < 20; round++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < 1000; i++) {
                    stream.runInline(work);
                }
                least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
            }
            assertThat(least).isZero();
            assertThat(count[0]).isEqualTo(20_001);
        }
    }

    @Test
    void submittingAgainWithAFinishedEventMakesNoGarbage() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        try (HostStream stream = new HostStream("again")) {
            int[] count = {0};
            Runnable work = () -> count[0]++;
            HostEvent event = stream.submit(work);
            HostEvent first = event;
            long least = Long.MAX_VALUE;
            for (int round = 0; round < 20; round++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < 1000; i++) {
                    event.synchronize();
                    event = stream.submit(work, event);
                }
                least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
            }
            event.synchronize();
            assertThat(event).isSameAs(first);
            assertThat(least).isZero();
            assertThat(count[0]).isEqualTo(20_001);
        }
    }

    /** A wait is for the point that the event was when the wait was asked for. */
    @Test
    void usingAnEventAgainMovesNoWaitThatIsQueued() {
        try (HostStream one = new HostStream("one");
                HostStream two = new HostStream("two")) {
            CountDownLatch twoMayGoOn = new CountDownLatch(1);
            CountDownLatch oneMayEnd = new CountDownLatch(1);
            HostEvent event = one.submit(() -> await(oneMayEnd));
            two.submit(() -> await(twoMayGoOn));
            two.waitFor(event);
            oneMayEnd.countDown();
            event.synchronize();
            HostEvent after = two.submit(() -> {});
            CountDownLatch never = new CountDownLatch(1);
            assertThat(one.submit(() -> await(never), event)).isSameAs(event);
            twoMayGoOn.countDown();
            after.synchronize();
            assertThat(event.isDone()).isFalse();
            never.countDown();
        }
    }

    @Test
    void anEventThatIsNotOverIsNotUsedAgain() {
        try (HostStream stream = new HostStream("busy")) {
            CountDownLatch mayEnd = new CountDownLatch(1);
            HostEvent first = stream.submit(() -> await(mayEnd));
            HostEvent second = stream.submit(() -> {}, first);
            assertThat(second).isNotSameAs(first);
            mayEnd.countDown();
            second.synchronize();
            assertThat(first.isDone()).isTrue();
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    @Test
    void hasNoGraphs() {
        try (HostStream stream = new HostStream("graph")) {
            AtomicBoolean ran = new AtomicBoolean();
            assertThatThrownBy(() -> Graph.capture(stream, () -> ran.set(true)))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessage(
                            "a stream on host cannot be captured; only streams on GPUs have graphs");
            assertThatThrownBy(stream::endCapture)
                    .isInstanceOf(UnsupportedOperationException.class);
            assertThat(ran).isFalse();
        }
    }
}
