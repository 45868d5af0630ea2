package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import java.io.IOException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 30, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class InProcessGroupTest {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final Duration SHORT = Duration.ofMillis(100);

    @Test
    void everybodyGetsEverybodysMessageInRankOrder() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(5)) {
            group.run(
                    communicator -> {
                        for (int round = 0; round < 200; round++) {
                            byte[] mine = new byte[communicator.rank() + 1];
                            Arrays.fill(mine, (byte) round);
                            List<byte[]> all = communicator.allGather(mine, LONG);
                            // Messages are copies: what a rank does to its own later is nobody's
                            // business, nor what it does to those that it got.
                            Arrays.fill(mine, (byte) -1);
                            assertThat(all).hasSize(5);
                            for (int rank = 0; rank < 5; rank++) {
                                assertThat(all.get(rank))
                                        .hasSize(rank + 1)
                                        .containsOnly((byte) round);
                                Arrays.fill(all.get(rank), (byte) -1);
                            }
                        }
                    });
        }
    }

    @Test
    void anyTimeoutWillDo() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            Communicator alone = group.communicator(0);
            assertThatThrownBy(() -> alone.barrier(Duration.ofDays(-1)))
                    .isInstanceOf(DeepEpTimeoutException.class)
                    .hasMessageContaining("waited more than 0 ms for rank 1");
            group.run(communicator -> communicator.barrier(ChronoUnit.FOREVER.getDuration()));
        }
    }

    @Test
    void referencesArePassedAsTheyAre() throws Exception {
        Object[] objects = {new Object(), new Object(), new Object()};
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        assertThat(communicator.isInProcess()).isTrue();
                        assertThat(
                                        communicator.exchangeReferences(
                                                objects[communicator.rank()], LONG))
                                .containsExactly(objects);
                    });
        }
    }

    @Test
    void oneRankAlone() throws Exception {
        AtomicInteger runs = new AtomicInteger();
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        communicator.barrier(SHORT);
                        runs.incrementAndGet();
                    });
        }
        assertThat(runs).hasValue(1);
        for (int number : new int[] {0, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> InProcessGroup.of(number))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("numRanks=" + number + " is not in [1, 2048]");
        }
        assertThatThrownBy(() -> InProcessGroup.of(2).communicator(2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("rank=2 is not in [0, numRanks=2)");
    }

    @Test
    void theFailureShowsWhereTheGroupWasRun() {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            assertThatThrownBy(
                            () ->
                                    group.run(
                                            _ -> {
                                                throw new IOException("on purpose");
                                            }))
                    .isInstanceOf(RankFailedException.class)
                    .satisfies(
                            failure ->
                                    assertThat(failure.getStackTrace())
                                            .extracting(StackTraceElement::getClassName)
                                            .contains(getClass().getName()));
        }
    }

    /**
     * {@link InProcessGroup#close} closes what ranks left open only where their threads have ended.
     */
    @Test
    void theThreadsOfTheRanksHaveEndedAfterARun() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            for (int round = 0; round < 2_000; round++) {
                Queue<Thread> threads = new ConcurrentLinkedQueue<>();
                group.run(communicator -> threads.add(Thread.currentThread()));
                assertThat(threads).hasSize(4).noneMatch(Thread::isAlive);
            }
        }
    }

    /** All who wait name the rank that did not come, not each other. */
    @Test
    void timeoutNamesTheAbsentRank() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 2) {
                            return;
                        }
                        DeepEpTimeoutException error =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> communicator.barrier(SHORT));
                        assertThat(error)
                                .as("a timeout on rank %d", communicator.rank())
                                .isNotNull();
                        assertThat(error.peer()).as(error.getMessage()).isEqualTo(2);
                        assertThat(error.rank()).isEqualTo(communicator.rank());
                        assertThat(error.phase()).isNotBlank();
                    });
        }
    }

    /** A rank that gives no message, or no time, has not met the others. */
    @Test
    void whoIsRefusedHasNotArrived() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        assertThatThrownBy(() -> communicator.allGather(null, LONG))
                                .isInstanceOf(NullPointerException.class)
                                .hasMessage("message");
                        assertThatThrownBy(() -> communicator.barrier(null))
                                .isInstanceOf(NullPointerException.class)
                                .hasMessage("timeout");
                        communicator.barrier(ChronoUnit.FOREVER.getDuration());
                    });
        }
    }

    @Test
    void aBarrierIsNoExchangeOfMessages() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 0) {
                            communicator.allGather(new byte[1], LONG);
                        } else {
                            assertThatThrownBy(() -> communicator.barrier(LONG))
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageStartingWith(
                                            "barrier: rank 0 makes a different call");
                        }
                    });
        }
    }

    @Test
    void aReferenceIsNoMessage() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 0) {
                            communicator.exchangeReferences("no message", LONG);
                        } else {
                            assertThatThrownBy(() -> communicator.barrier(LONG))
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageStartingWith(
                                            "allGather: rank 0 makes a different call");
                        }
                    });
        }
    }

    @Test
    void theGroupWorksAfterATimeout() throws Exception {
        CountDownLatch over = new CountDownLatch(2);
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() != 0) {
                            assertThatThrownBy(() -> communicator.barrier(SHORT))
                                    .isInstanceOf(DeepEpTimeoutException.class);
                            over.countDown();
                        }
                        assertThat(over.await(20, TimeUnit.SECONDS)).isTrue();
                        communicator.barrier(LONG);
                    });
        }
    }

    @Test
    void nobodyWaitsForARankThatLeft() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            communicator.close();
                            assertThatThrownBy(() -> communicator.barrier(LONG))
                                    .isInstanceOf(IllegalStateException.class)
                                    .hasMessage("the communicator of rank 1 is closed");
                            return;
                        }
                        DeepEpTimeoutException error =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> communicator.barrier(LONG));
                        assertThat(error).isNotNull();
                        assertThat(error.peer()).isEqualTo(1);
                        assertThat(communicator.isAlive(1)).isFalse();
                    });
        }
    }

    /** With its name and cause, also through a rank that fails only because of the first. */
    @Test
    void everybodyLearnsWhyARankFailed() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            RankFailedException first =
                    catchThrowableOfType(
                            RankFailedException.class,
                            () ->
                                    group.run(
                                            communicator -> {
                                                communicator.barrier(LONG);
                                                if (communicator.rank() == 2) {
                                                    throw new IOException("disk full");
                                                }
                                                communicator.barrier(LONG);
                                            }));
            assertThat(first).hasMessageContaining("rank 2 failed: java.io.IOException: disk full");
            assertThat(first.getSuppressed())
                    .hasSize(3)
                    .allSatisfy(
                            other -> {
                                assertThat(other.getCause())
                                        .isInstanceOf(DeepEpTimeoutException.class)
                                        .hasMessageStartingWith(
                                                "rank 2 failed: java.io.IOException: disk full; rank ");
                                assertThat(((DeepEpTimeoutException) other.getCause()).peer())
                                        .isEqualTo(2);
                            });
            assertThat(group.communicator(0).isAlive(2)).isFalse();
            group.run(communicator -> communicator.barrier(LONG));
        }
    }

    /** Kernels on a GPU ask nobody: they are told that it is back. */
    @Test
    void whoHearsOfDeparturesHearsThatARankIsTakenBack() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            Communicator zero = group.communicator(0);
            Queue<Integer> gone = new ConcurrentLinkedQueue<>();
            Runnable forget = zero.onDeparture(() -> gone.add(zero.departures().size()));
            group.communicator(1).fail(new IOException("disk full"));
            assertThat(gone).containsExactly(1);
            group.run(communicator -> communicator.barrier(LONG));
            assertThat(gone).containsExactly(1, 0);
            group.run(communicator -> communicator.barrier(LONG));
            assertThat(gone).containsExactly(1, 0);
            forget.run();
        }
    }

    /** Not its own time-out, which was not over. */
    @Test
    void whoWaitsWithOneThatGivesUpSaysHowLongItWaited() throws Exception {
        CompletableFuture<Thread> patient = new CompletableFuture<>();
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        if (rank == 2) {
                            return;
                        }
                        if (rank == 1) {
                            patient.complete(Thread.currentThread());
                        }
                        while (rank == 0
                                && patient.join().getState() != Thread.State.TIMED_WAITING) {
                            Thread.onSpinWait();
                        }
                        Duration own = rank == 0 ? SHORT : LONG;
                        DeepEpTimeoutException error =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> communicator.barrier(own));
                        assertThat(error.peer()).isEqualTo(2);
                        if (rank == 0) {
                            assertThat(error.waited()).isEqualTo(SHORT);
                        } else {
                            assertThat(error.waited()).isLessThan(LONG);
                            assertThat(error).hasMessageNotContaining("more than");
                        }
                    });
        }
    }

    @Test
    void closingTheGroupEndsTheWaiting() throws Exception {
        InProcessGroup group = InProcessGroup.of(2);
        CountDownLatch started = new CountDownLatch(1);
        Thread closer =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try {
                                        started.await();
                                    } catch (InterruptedException interrupted) {
                                        Thread.currentThread().interrupt();
                                    }
                                    group.close();
                                });
        group.run(
                communicator -> {
                    if (communicator.rank() == 0) {
                        started.countDown();
                        assertThatThrownBy(() -> communicator.barrier(LONG))
                                .isInstanceOf(IllegalStateException.class)
                                .hasMessageContaining("closed");
                    }
                });
        closer.join();
        assertThat(group.communicator(1).isAlive(0)).isFalse();
    }

    @Test
    void failuresReachTheCaller() {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            assertThatThrownBy(
                            () ->
                                    group.run(
                                            communicator -> {
                                                if (communicator.rank() > 0) {
                                                    throw new IOException(
                                                            "disk " + communicator.rank());
                                                }
                                            }))
                    .isInstanceOf(RankFailedException.class)
                    .hasCauseInstanceOf(IOException.class)
                    .satisfies(
                            failure -> {
                                assertThat(((RankFailedException) failure).rank()).isPositive();
                                assertThat(failure.getSuppressed()).hasSize(1);
                                assertThat(failure.getSuppressed()[0])
                                        .isInstanceOf(RankFailedException.class);
                            });
        }
    }

    @Test
    void whoIsInterruptedMayComeAgain() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            CountDownLatch gone = new CountDownLatch(1);
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            gone.await();
                        } else {
                            Thread.currentThread().interrupt();
                            assertThatThrownBy(() -> communicator.barrier(LONG))
                                    .hasMessageContaining("rank 0 was interrupted");
                            assertThat(Thread.interrupted()).isTrue();
                            gone.countDown();
                        }
                        byte[] mine = {(byte) communicator.rank()};
                        assertThat(communicator.allGather(mine, LONG))
                                .containsExactly(new byte[] {0}, new byte[] {1});
                    });
        }
    }

    @Test
    void interruptingTheCallerInterruptsTheRanks() throws Exception {
        AtomicInteger interrupted = new AtomicInteger();
        CountDownLatch waiting = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        try (InProcessGroup group = InProcessGroup.of(2)) {
            Thread caller =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try {
                                            group.run(
                                                    communicator -> {
                                                        if (communicator.rank() == 0) {
                                                            waiting.countDown();
                                                            try {
                                                                communicator.barrier(LONG);
                                                            } catch (
                                                                    IllegalStateException
                                                                            expected) {
                                                                interrupted.incrementAndGet();
                                                                ended.countDown();
                                                            }
                                                        }
                                                    });
                                        } catch (InterruptedException expected) {
                                            interrupted.incrementAndGet();
                                        }
                                    });
            waiting.await();
            caller.interrupt();
            caller.join();
            assertThat(ended.await(20, TimeUnit.SECONDS)).isTrue();
        }
        assertThat(interrupted).hasValue(2);
    }
}
