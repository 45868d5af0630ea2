package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.Departure;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several communicators in one JVM, on loopback. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ProcessCommunicatorTest {
    private static final Duration SHORT = Duration.ofMillis(300);

    @Test
    void gathersMessagesOfAnyLengthInManyRounds() throws Exception {
        int size = 5;
        List<ProcessCommunicator> group = Groups.open(size);
        Groups.onEach(
                group,
                each -> {
                    for (int round = 0; round < 60; round++) {
                        List<byte[]> all = each.allGather(message(each.rank(), round), Groups.LONG);
                        assertThat(all).hasSize(size);
                        for (int peer = 0; peer < size; peer++) {
                            assertThat(all.get(peer)).isEqualTo(message(peer, round));
                        }
                    }
                });
        Groups.closeAll(group);
    }

    /** Empty, small, and a few of megabytes. */
    private static byte[] message(int rank, int round) {
        Random random = new Random(1000L * round + rank);
        int bits = random.nextInt(round % 20 == 19 ? 23 : 12);
        byte[] message = new byte[random.nextInt(1 << bits)];
        random.nextBytes(message);
        return message;
    }

    /** A rank that gives no message, or no time, has not met the others. */
    @Test
    void whoIsRefusedHasNotArrived() throws Exception {
        List<ProcessCommunicator> group = Groups.open(2);
        ProcessCommunicator hasty = group.get(0);
        assertThatThrownBy(() -> hasty.allGather(null, Groups.LONG)).hasMessage("message");
        assertThatThrownBy(() -> hasty.barrier(null)).hasMessage("timeout");
        Groups.onEach(group, each -> each.barrier(ChronoUnit.FOREVER.getDuration()));
        Groups.closeAll(group);
    }

    @Test
    void ranksLeaveRightAfterTheLastBarrier() throws Exception {
        for (int repeat = 0; repeat < 3; repeat++) {
            Groups.onEach(
                    Groups.open(4),
                    each -> {
                        try (each) {
                            each.barrier(Groups.LONG);
                        }
                    });
        }
    }

    @Test
    void aloneInTheGroup() throws Exception {
        try (ProcessCommunicator alone =
                ProcessCommunicator.open(
                        Groups.environment(0, 1, "localhost", LoopbackPorts.free(), Groups.SECRET),
                        Groups.LONG)) {
            assertThat(alone.allGather(new byte[] {7}, SHORT)).containsExactly(new byte[] {7});
            assertThat(alone.isAlive(0)).isTrue();
        }
    }

    @Test
    void allTimesMayBeForEver() throws Exception {
        Duration forEver = ChronoUnit.FOREVER.getDuration();
        ProcessEnvironment environment =
                new ProcessEnvironment(
                        0, 1, 0, 1, "localhost", LoopbackPorts.free(), Groups.SECRET, forEver);
        try (ProcessCommunicator alone = ProcessCommunicator.open(environment, forEver)) {
            alone.barrier(forEver);
        }
    }

    /** Rank 1 waits for rank 2 with more time, in a call that rank 0 has given up. */
    @Test
    void namesTheRankThatTheMissingOneWaitsFor() throws Exception {
        List<ProcessCommunicator> group = Groups.open(3);
        CompletableFuture<List<byte[]>> patient =
                CompletableFuture.supplyAsync(
                        () -> group.get(1).allGather(new byte[0], Groups.LONG));
        for (int call = 0; call < 2; call++) {
            DeepEpTimeoutException timeout =
                    catchThrowableOfType(
                            DeepEpTimeoutException.class, () -> group.get(0).barrier(SHORT));
            assertThat(timeout.peer()).isEqualTo(2);
        }
        group.get(2).allGather(new byte[0], Groups.LONG);
        assertThat(patient.get()).hasSize(3);
        Groups.closeAll(group);
    }

    @Test
    void namesTheRankThatDoesNotCall() throws Exception {
        List<ProcessCommunicator> group = Groups.open(3);
        DeepEpTimeoutException timeout =
                catchThrowableOfType(
                        DeepEpTimeoutException.class,
                        () ->
                                Groups.onEach(
                                        List.of(group.get(0), group.get(2)),
                                        each -> each.barrier(SHORT)));
        assertThat(timeout.peer()).isEqualTo(1);
        assertThat(timeout).hasMessageContaining("communicator exchange: expected=3");
        assertThat(group.get(0).isAlive(1)).isTrue();

        // The call that failed counts: the late rank makes it, and then all go on together.
        group.get(1).allGather(new byte[] {1}, Groups.LONG);
        List<List<byte[]>> next =
                Groups.each(
                        3,
                        rank ->
                                group.get(rank)
                                        .allGather(new byte[] {(byte) (10 + rank)}, Groups.LONG));
        assertThat(next.get(2)).containsExactly(new byte[] {10}, new byte[] {11}, new byte[] {12});
        Groups.closeAll(group);
    }

    @Test
    void noticesARankThatLeaves() throws Exception {
        List<ProcessCommunicator> group = Groups.open(3);
        CompletableFuture<Void> waiting =
                CompletableFuture.runAsync(() -> group.get(2).barrier(Groups.LONG));
        group.get(0).close();
        assertThatThrownBy(() -> waiting.get(60, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(DeepEpTimeoutException.class)
                .hasMessageContaining("for rank 0 in communicator exchange");
        assertThat(group.get(2).isAlive(0)).isFalse();
        assertThat(group.get(2).isAlive(1)).isTrue();
        group.get(1).close();
        group.get(1).close();
        group.get(2).close();
        assertThatThrownBy(() -> group.get(2).barrier(SHORT))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("the communicator of rank 2 is closed");
    }

    @Test
    void everybodyLearnsWhyARankFailed() throws Exception {
        List<ProcessCommunicator> group = Groups.open(3);
        List<CompletableFuture<Void>> waiting =
                List.of(0, 1).stream()
                        .map(
                                rank ->
                                        CompletableFuture.runAsync(
                                                () -> group.get(rank).barrier(Groups.LONG),
                                                Thread::startVirtualThread))
                        .toList();
        group.get(2).fail(new IOException("disk full"));
        for (int rank = 0; rank < 2; rank++) {
            CompletableFuture<Void> call = waiting.get(rank);
            assertThatThrownBy(() -> call.get(60, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(DeepEpTimeoutException.class)
                    .hasMessageContaining(
                            "rank 2 failed: java.io.IOException: disk full; rank " + rank)
                    .hasMessageEndingWith("for rank 2 in communicator exchange");
            assertThat(group.get(rank).isAlive(2)).isFalse();
            assertThat(group.get(rank).departures()).extracting(Departure::rank).containsExactly(2);
        }
        Groups.closeAll(group);
    }

    @Test
    void closingEndsACallThatWaits() throws Exception {
        List<ProcessCommunicator> group = Groups.open(2);
        CompletableFuture<Void> waiting =
                CompletableFuture.runAsync(() -> group.get(1).barrier(Groups.LONG));
        group.get(1).close();
        assertThatThrownBy(() -> waiting.get(60, TimeUnit.SECONDS))
                .hasCauseInstanceOf(IllegalStateException.class);
        group.get(0).close();
    }

    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void namesTheRankThatNeverStarts() throws Exception {
        int port = LoopbackPorts.free();
        DeepEpTimeoutException timeout =
                catchThrowableOfType(
                        DeepEpTimeoutException.class,
                        () ->
                                Groups.each(
                                        2,
                                        rank ->
                                                ProcessCommunicator.open(
                                                        Groups.environment(rank, 3, port),
                                                        Duration.ofSeconds(4))));
        assertThat(timeout.peer()).isEqualTo(2);
        assertThat(timeout.phase()).isEqualTo("communicator start");
    }

    @Test
    void waitsForRankZeroOnlyAsLongAsTold() throws Exception {
        ProcessEnvironment lonely = Groups.environment(1, 2, LoopbackPorts.free());
        assertThat(catchThrowable(() -> ProcessCommunicator.open(lonely, Duration.ofSeconds(1))))
                .isInstanceOf(DeepEpTimeoutException.class)
                .hasMessageContaining("for rank 0 in communicator start");
    }

    @Test
    void anInterruptEndsTheWaitForRankZero() throws Exception {
        ProcessEnvironment lonely = Groups.environment(1, 2, LoopbackPorts.free());
        FutureTask<Boolean> opening =
                new FutureTask<>(
                        () -> {
                            assertThatThrownBy(() -> ProcessCommunicator.open(lonely, Groups.LONG))
                                    .isInstanceOf(IllegalStateException.class)
                                    .hasMessage("rank 1 was interrupted in a collective call");
                            return Thread.interrupted();
                        });
        Thread rank = Thread.ofPlatform().daemon().start(opening);
        Thread.sleep(500); // until it looks for rank 0
        rank.interrupt();
        assertThat(opening.get(10, TimeUnit.SECONDS)).as("interrupt flag").isTrue();
    }

    @Test
    void refusesAnotherSecretAnotherSizeAndATakenRank() throws Exception {
        int port = LoopbackPorts.free();
        CompletableFuture<ProcessCommunicator> zero = Groups.opening(0, 3, port);
        CompletableFuture<ProcessCommunicator> one = Groups.opening(1, 3, port);
        assertRefused(
                Groups.environment(2, 3, "127.0.0.1", port, "some other secret"),
                "the same DEEPEP_SECRET");
        assertRefused(
                Groups.environment(2, 4, port),
                "rank 2 was started with size=4, rank 0 with size=3");
        try (ProcessCommunicator last =
                ProcessCommunicator.open(Groups.environment(2, 3, port), Groups.LONG)) {
            assertRefused(Groups.environment(1, 3, port), "rank=1 has joined this group before");
            assertThatThrownBy(
                            () ->
                                    ProcessCommunicator.open(
                                            Groups.environment(0, 3, port), Groups.LONG))
                    .isInstanceOf(DeepEpUnavailableException.class)
                    .hasMessageContaining("rank 0 cannot listen at 127.0.0.1:" + port)
                    .hasMessageContaining("choose a free MASTER_PORT");
            assertThat(last.isAlive(0)).isTrue();
            Groups.closeAll(List.of(zero.join(), one.join()));
        }
    }

    /** 192.0.2.0/24 is of nobody, and a link-local address leads nowhere without its link. */
    @Test
    void saysWhatIsWrongWithTheMasterAddress() {
        assertUnavailable(
                0,
                "192.0.2.99",
                "rank 0 cannot listen at 192.0.2.99:",
                "not the address of this host");
        assertUnavailable(
                1, "fe80::1", "rank 1 cannot open its connections: ", "check MASTER_ADDR");
    }

    /** The others would wait until their time is over, and so would rank 0. */
    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0", "::", "fe80::1"})
    void anAddressThatMeansAnotherHostOnEachIsRefused(String master) {
        ProcessEnvironment environment =
                new ProcessEnvironment(
                        0,
                        2,
                        0,
                        1,
                        master,
                        LoopbackPorts.free(),
                        Groups.SECRET,
                        ProcessEnvironment.DEFAULT_FAILURE_TIMEOUT);
        assertUnavailable(
                environment,
                "MASTER_ADDR=" + master + " is ",
                "on this host, which other hosts do not reach");
    }

    private static void assertUnavailable(int rank, String master, String... parts) {
        assertUnavailable(
                Groups.environment(rank, 2, master, LoopbackPorts.free(), Groups.SECRET), parts);
    }

    private static void assertUnavailable(ProcessEnvironment environment, String... parts) {
        assertThatThrownBy(() -> ProcessCommunicator.open(environment, SHORT))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContainingAll(parts);
    }

    private static void assertRefused(ProcessEnvironment stranger, String why) {
        assertThatThrownBy(() -> ProcessCommunicator.open(stranger, Groups.LONG))
                .isInstanceOf(RankMismatchException.class)
                .hasMessageContaining(why);
    }
}
