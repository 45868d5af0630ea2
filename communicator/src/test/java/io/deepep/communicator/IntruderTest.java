package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpTimeoutException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.jgroups.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Processes with the secret that do what no rank does. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IntruderTest {
    /** Not even with the secret does anybody reach Java serialization. */
    @Test
    void objectsAreNotRead() throws Exception {
        int port = Groups.freePort();
        List<ProcessCommunicator> group = open(port);
        int before = Stranger.Bait.TAKEN.get();
        try (Intruder intruder = Intruder.connect(port, new UUID(1, 2 << 16 | 1))) {
            intruder.say(Stranger.greeting(), Stranger.bait(), Stranger.nestedSets());
            intruder.say(Stranger.claim(120 << 20));
            Stranger.awaitClosed(intruder.socket());
        }
        assertThat(Stranger.Bait.TAKEN).hasValue(before);
        barrier(group);
        Groups.closeAll(group);
    }

    private static List<ProcessCommunicator> open(int port) throws Exception {
        return Groups.each(
                2,
                rank -> ProcessCommunicator.open(Groups.environment(rank, 2, port), Groups.LONG));
    }

    private static void barrier(List<ProcessCommunicator> group) throws Exception {
        Groups.each(
                2,
                rank -> {
                    group.get(rank).barrier(Groups.LONG);
                    return null;
                });
    }

    /** A rank whose process ends before it is a member is missed at once, and by its name. */
    @Test
    void aConnectionThatBreaksWhileRanksJoinIsADeath() throws Exception {
        int port = Groups.freePort();
        CompletableFuture<ProcessCommunicator> zero =
                CompletableFuture.supplyAsync(
                        () -> ProcessCommunicator.open(Groups.environment(0, 3, port), Groups.LONG),
                        Thread::startVirtualThread);
        CompletableFuture<ProcessCommunicator> one =
                CompletableFuture.supplyAsync(
                        () -> ProcessCommunicator.open(Groups.environment(1, 3, port), Groups.LONG),
                        Thread::startVirtualThread);
        Intruder two = null;
        while (two == null) {
            try {
                two = Intruder.connect(port, RankAddress.create(2, 3));
            } catch (IOException notYet) {
                Thread.sleep(20);
            }
        }
        two.close();
        for (CompletableFuture<ProcessCommunicator> open : List.of(zero, one)) {
            assertThatThrownBy(() -> open.get(60, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOf(DeepEpTimeoutException.class);
        }
        assertThatThrownBy(zero::join)
                .hasMessageContaining("rank 2 in communicator start, in vain: rank 2 was lost");
    }

    /** Later, failure detection decides; and who is not let in speaks for no member. */
    @Test
    void aConnectionThatBreaksLaterIsNot() throws Exception {
        int port = Groups.freePort();
        List<ProcessCommunicator> group = open(port);
        try (Intruder other = Intruder.connect(port, RankAddress.create(1, 2))) {
            Stranger.send(
                    other.socket(),
                    other.seal(
                            Frames.DEPARTURE, new byte[] {0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 'x'}));
        }
        barrier(group);
        assertThat(group.getFirst().departures()).isEmpty();
        Groups.closeAll(group);
    }
}
