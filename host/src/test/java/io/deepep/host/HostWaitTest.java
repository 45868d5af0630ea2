package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.spi.CallTimeouts;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Waits of one rank for flags and doorbells. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostWaitTest {
    private static final long SHORT = 5_000_000;
    private static final long LONG = 30_000_000_000L;
    private static final CallTimeouts LONG_ONES = new CallTimeouts(Duration.ofNanos(LONG), null);

    @Test
    void timeoutNamesRankPeerPhaseAndBothValues() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 128);
            heap.signal(0, 16, 2);
            HostWait wait = new HostWait(3, new HostDoorbell(), SHORT);
            assertThatThrownBy(() -> TestFlags.await(wait, heap, 16, 4, 5, "combine.data"))
                    .isInstanceOf(DeepEpTimeoutException.class)
                    .hasMessageContainingAll("rank 3", "rank 5", "combine.data", "4", "2")
                    .asInstanceOf(InstanceOfAssertFactories.type(DeepEpTimeoutException.class))
                    .satisfies(
                            timeout -> {
                                assertThat(timeout.rank()).isEqualTo(3);
                                assertThat(timeout.peer()).isEqualTo(5);
                            });
            assertThat(wait.expired()).isTrue();
        }
    }

    /** It has not seen yet what came meanwhile. */
    @Test
    void timeInWhichTheProcessWasStoppedDoesNotCount() throws Exception {
        long allowed = 1_000_000_000;
        HostWait wait = new HostWait(0, new HostDoorbell(), allowed);
        wait.start();
        for (int i = 0; i < 100; i++) {
            wait.pause();
        }
        Thread.sleep(Duration.ofNanos(allowed).multipliedBy(2)); // as if it were stopped
        assertThatNoException().isThrownBy(() -> wait.idle(1, "dispatch.data", 1, 0));
        assertThat(wait.waitedNanos()).isLessThan(allowed);
        assertThat(wait.stoppedNanos()).isGreaterThan(allowed);
        while (!wait.expired()) {
            wait.pause();
        }
    }

    @Test
    void progressStartsTheTimeAgain() {
        HostWait wait = new HostWait(0, new HostDoorbell(), SHORT);
        wait.start();
        assertThat(wait.timeoutNanos()).isEqualTo(SHORT);
        while (!wait.expired()) {
            wait.pause();
        }
        wait.progress();
        assertThat(wait.expired()).isFalse();
        wait.idle(1, "dispatch.data", 1, 0);
    }

    /** Long before the time allowed is over, with the name of the rank and what became of it. */
    @Test
    void aWaitForARankThatIsGoneEndsAtOnce() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 128);
            List<Departure> gone = new CopyOnWriteArrayList<>();
            HostWait wait = new HostWait(3, new HostDoorbell(), LONG_ONES, () -> List.copyOf(gone));
            gone.add(Departure.left(4));
            assertThatThrownBy(() -> TestFlags.await(wait, heap, 16, 4, 4, "combine.data"))
                    .hasMessageContaining("rank 4 has left the group");
            gone.add(Departure.failed(5, new IllegalStateException("disk full")));
            for (int peer : new int[] {5, 2, 4}) {
                assertThatThrownBy(() -> TestFlags.await(wait, heap, 16, 4, peer, "combine.data"))
                        .isInstanceOf(DeepEpTimeoutException.class)
                        .hasMessageContainingAll(
                                "rank 3", "combine.data", "rank 5 failed", "disk full");
            }
        }
    }

    /** The rank's last store may come to be seen only after its departure. */
    @Test
    void whatARankStoredBeforeItLeftIsStillFound() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 128);
            HostWait wait =
                    new HostWait(
                            3,
                            new HostDoorbell(),
                            LONG_ONES,
                            () -> {
                                heap.signal(0, 16, 4);
                                return List.of(Departure.left(5));
                            });
            TestFlags.await(wait, heap, 16, 4, 5, "combine.data");
            assertThat(heap.flag(16)).isEqualTo(4);
            assertThat(wait.departures()).hasSize(1);
        }
    }

    @Test
    void aFlagThatIsThereIsNotWaitedFor() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 128);
            heap.signal(0, 0, 9);
            // Even with no time at all.
            TestFlags.await(new HostWait(0, new HostDoorbell(), 0), heap, 0, 8, 1, "none");
            assertThat(heap.flag(0)).isEqualTo(9);
        }
    }

    @Test
    void interruptionEndsTheWaitAndKeepsTheFlag() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 128);
            HostWait wait = new HostWait(2, new HostDoorbell(), LONG);
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> TestFlags.await(wait, heap, 0, 1, 1, "never"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("rank 2 was interrupted while it waited for its peers");
            assertThat(Thread.interrupted()).isTrue();
        }
    }

    @Test
    void aRingWakesTheListener() throws InterruptedException {
        HostDoorbell doorbell = new HostDoorbell();
        doorbell.ring();
        AtomicBoolean rung = new AtomicBoolean();
        Thread waiter =
                Thread.ofPlatform()
                        .daemon()
                        .start(
                                () -> {
                                    doorbell.listen(Thread.currentThread());
                                    while (!rung.get()) {
                                        LockSupport.park(doorbell);
                                    }
                                });
        while (waiter.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        rung.set(true);
        doorbell.ring();
        waiter.join();
        assertThat(waiter.isAlive()).isFalse();
    }
}
