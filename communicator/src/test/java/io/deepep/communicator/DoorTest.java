package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import org.jgroups.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DoorTest {
    private static final int SIZE = 4;

    /** What one rank knows, and its door. */
    private record Rank(Exchange exchange, Door door) {
        static Rank of(int rank) {
            UUID address = RankAddress.create(rank, SIZE);
            Exchange exchange = new Exchange(rank, SIZE, address);
            return new Rank(exchange, new Door(Groups.SECRET, address, exchange));
        }
    }

    /**
     * Rank 2 gives up waiting for rank 1. Rank 3 is connected to rank 0 alone, and is about to see
     * rank 2 leave: it must know the reason before.
     */
    @Test
    void rankZeroPassesOnWhyARankFailsBeforeAnythingElse() throws Exception {
        Rank zero = Rank.of(0);
        Rank two = Rank.of(2);
        Rank three = Rank.of(3);
        try (GuardedServerSocket gate = new GuardedServerSocket(zero.door())) {
            gate.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            try (SealedSocket fromTwo = new SealedSocket(two.door());
                    SealedSocket fromThree = new SealedSocket(three.door())) {
                fromTwo.connect(gate.getLocalSocketAddress(), 1000);
                Socket toTwo = gate.accept();
                fromThree.connect(gate.getLocalSocketAddress(), 1000);
                Socket toThree = gate.accept();

                DeepEpTimeoutException why =
                        new DeepEpTimeoutException(
                                2, 1, ProcessCommunicator.START, SIZE, 3, 1_000_000);
                two.door().tellAll(List.of(Departure.failed(2, why)));
                fromTwo.getOutputStream().write('L');

                assertThat(toTwo.getInputStream().read()).isEqualTo('L');
                toThree.getOutputStream().write('V');
                assertThat(fromThree.getInputStream().read()).isEqualTo('V');
                assertThat(three.exchange().departures())
                        .singleElement()
                        .satisfies(
                                gone -> {
                                    assertThat(gone.rank()).isEqualTo(2);
                                    assertThat(gone.blamed()).isEqualTo(1);
                                });
                assertThat(Departure.culprit(three.exchange().departures(), 3, 2))
                        .hasValueSatisfying(named -> assertThat(named.rank()).isEqualTo(1));
            }
        }
    }

    /** It had no more time to wait for this rank's proof, say; it will come again. */
    @Test
    void whoLeavesBeforeItsFirstWordIsNotLost() throws Exception {
        Rank zero = Rank.of(0);
        Rank one = Rank.of(1);
        try (GuardedServerSocket gate = new GuardedServerSocket(zero.door())) {
            gate.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            Intruder.connect(gate.getLocalPort(), one.door().address()).close();
            Socket toImpatient = gate.accept();
            assertThatThrownBy(() -> toImpatient.getInputStream().read())
                    .isInstanceOf(IOException.class);
            assertThat(zero.exchange().departures()).isEmpty();

            try (SealedSocket again = new SealedSocket(one.door())) {
                again.connect(gate.getLocalSocketAddress(), 1000);
                Socket toOne = gate.accept();
                again.getOutputStream().write('A');
                assertThat(toOne.getInputStream().read()).isEqualTo('A');
            }
        }
    }

    /** Of two hosts that cannot reach each other, each would blame a rank that is well. */
    @Test
    void knowsWhichConnectionFailsUntilItIsMade() throws Exception {
        Rank zero = Rank.of(0);
        Rank one = Rank.of(1);
        InetAddress host = InetAddress.getLoopbackAddress();
        InetSocketAddress first = new InetSocketAddress(host, LoopbackPorts.free());
        InetSocketAddress second = new InetSocketAddress(host, LoopbackPorts.free());
        connect(one, first);
        connect(one, second);
        connect(one, first);
        assertThat(one.door().failure())
                .isEqualTo(
                        " (no connection to 127.0.0.1 port %s: Connection refused)",
                        first.getPort());
        try (GuardedServerSocket gate = new GuardedServerSocket(zero.door())) {
            gate.bind(first, 0);
            connect(one, first);
        }
        assertThat(one.door().failure()).contains(Door.place(second));
        assertThat(one.door().failure(second)).isEqualTo(" (Connection refused)");
        assertThat(one.door().failure(first)).isEmpty();
    }

    private static void connect(Rank rank, InetSocketAddress place) throws IOException {
        try (SealedSocket socket = new SealedSocket(rank.door())) {
            socket.connect(place, 1000);
        } catch (ConnectException refused) {
            // What it says, the door knows.
        }
    }
}
