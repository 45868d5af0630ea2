package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jgroups.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Processes with the secret that do what no rank does. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IntruderTest {
    /** Not even with the secret does anybody reach Java serialization. */
    @Test
    void objectsAreNotRead() throws Exception {
        int port = LoopbackPorts.free();
        List<ProcessCommunicator> group = Groups.open(2, port);
        int before = Stranger.Bait.TAKEN.get();
        try (Intruder intruder = Intruder.connect(port, new UUID(1, 2 << 16 | 1))) {
            intruder.say(Stranger.greeting(), Stranger.bait(), Stranger.nestedSets());
            intruder.say(Stranger.claim(120 << 20));
            Stranger.awaitClosed(intruder.socket());
        }
        assertThat(Stranger.Bait.TAKEN).hasValue(before);
        Groups.barrier(group);
        Groups.closeAll(group);
    }

    /** A rank whose process ends before it is a member is missed at once, and by its name. */
    @Test
    void aConnectionThatBreaksWhileRanksJoinIsADeath() throws Exception {
        int port = LoopbackPorts.free();
        CompletableFuture<ProcessCommunicator> zero = Groups.opening(0, 3, port);
        UUID survivor = RankAddress.create(1, 3);
        Exchange exchange = new Exchange(1, 3, survivor);
        Intruder victim = connectWhenOpen(port);
        try (SealedSocket connection =
                new SealedSocket(new Door(Groups.SECRET, survivor, exchange))) {
            connection.connect(victim.socket().getRemoteSocketAddress(), 1000);
            connection.getOutputStream().write(Stranger.greeting());
            victim.say(new byte[] {'b'});
            victim.close();
            assertThatThrownBy(zero::join)
                    .hasCauseInstanceOf(DeepEpTimeoutException.class)
                    .hasMessageContaining("rank 2 was lost")
                    .hasMessageEndingWith("for rank 2 in communicator start");
            connection.getInputStream().transferTo(OutputStream.nullOutputStream());
        }
        assertThat(exchange.departures()).extracting(Departure::rank).containsExactly(2, 0);
        assertThatThrownBy(() -> exchange.requireNobodyGone(System.nanoTime()))
                .isInstanceOf(DeepEpTimeoutException.class)
                .hasMessageStartingWith("rank 2 was lost");
    }

    private static Intruder connectWhenOpen(int port) throws Exception {
        while (true) {
            try {
                return Intruder.connect(port, RankAddress.create(2, 3));
            } catch (IOException notYet) {
                Thread.sleep(20);
            }
        }
    }

    /** Later, failure detection decides; and who is not let in speaks for no member. */
    @Test
    void aConnectionThatBreaksLaterIsNot() throws Exception {
        int port = LoopbackPorts.free();
        List<ProcessCommunicator> group = Groups.open(2, port);
        try (Intruder other = Intruder.connect(port, RankAddress.create(1, 2))) {
            Stranger.send(
                    other.socket(),
                    other.seal(
                            Frames.DEPARTURE, new byte[] {0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 'x'}));
        }
        Groups.barrier(group);
        assertThat(group.getFirst().departures()).isEmpty();
        Groups.closeAll(group);
    }
}
