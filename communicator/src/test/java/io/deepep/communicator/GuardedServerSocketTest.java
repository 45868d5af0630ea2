package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import org.jgroups.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GuardedServerSocketTest {
    private static final int MANY = 600;

    private final List<Socket> strangers = new ArrayList<>();
    private GuardedServerSocket gate;

    private static Door door(int rank, String secret) {
        UUID address = RankAddress.create(rank, 2);
        return new Door(secret, address, new Exchange(rank, 2, address));
    }

    @BeforeEach
    void open() throws IOException {
        gate = new GuardedServerSocket(door(0, Groups.SECRET));
        gate.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    @AfterEach
    void close() throws IOException {
        gate.close();
        for (Socket stranger : strangers) {
            stranger.close();
        }
    }

    private SealedSocket join(String secret) throws IOException {
        SealedSocket socket = new SealedSocket(door(1, secret));
        socket.connect(gate.getLocalSocketAddress(), 1000);
        return socket;
    }

    @Test
    void whatIsSaidArrives() throws Exception {
        byte[] words = new byte[100_000];
        words[99_999] = 7;
        Thread speaking =
                Thread.startVirtualThread(
                        () -> {
                            try (SealedSocket one = join(Groups.SECRET)) {
                                one.getOutputStream().write(words);
                            } catch (IOException impossible) {
                                throw new AssertionError(impossible);
                            }
                        });
        try (Socket other = gate.accept()) {
            assertThat(other.getInputStream().readAllBytes()).isEqualTo(words);
        }
        speaking.join();
    }

    /** And whoever has the secret gets in between them. */
    @Test
    void theOldestOfTooManySilentOnesGoes() throws Exception {
        for (int i = 0; i < MANY; i++) {
            strangers.add(Stranger.connect(gate.getLocalPort()));
        }
        assertThat(Stranger.awaitClosed(strangers.getFirst())).isZero();
        try (SealedSocket one = join(Groups.SECRET);
                Socket other = gate.accept()) {
            assertThat(RankAddress.rank(((SealedSocket) other).peer())).isEqualTo(1);
            assertThat(RankAddress.rank(one.peer())).isZero();
        }
        assertThat(gate.numUnproven()).isLessThanOrEqualTo(128);
    }

    /** However many come in that moment. */
    @Test
    void whoHasProvenTheSecretIsNotSentAway() throws Exception {
        Thread echo = Thread.ofPlatform().daemon().start(this::echo);
        int port = gate.getLocalPort();
        try (Stranger.Flood one = new Stranger.Flood(port);
                Stranger.Flood other = new Stranger.Flood(port)) {
            Groups.each(8, rank -> speakAgainAndAgain());
            one.stop();
            other.stop();
        } finally {
            gate.close();
            echo.join();
        }
    }

    private Void speakAgainAndAgain() throws IOException {
        for (int i = 0; i < 50; i++) {
            try (SealedSocket one = joinAtLast()) {
                one.getOutputStream().write(i);
                assertThat(one.getInputStream().read()).isEqualTo(i);
            }
        }
        return null;
    }

    /** Gives everybody its first byte back. */
    private void echo() {
        try {
            while (true) {
                Socket other = gate.accept();
                Thread.startVirtualThread(
                        () -> {
                            try (other) {
                                other.getOutputStream().write(other.getInputStream().read());
                            } catch (IOException lost) {
                                // Its other end sees that too.
                            }
                        });
            }
        } catch (IOException closed) {
            // That is the end.
        }
    }

    /** Comes again, as a rank does, until it is in. */
    private SealedSocket joinAtLast() {
        while (true) {
            try {
                return join(Groups.SECRET);
            } catch (IOException sentAway) {
                Thread.onSpinWait();
            }
        }
    }

    @Test
    void anotherSecretIsRefused() {
        assertThatThrownBy(() -> join("some other secret"))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("does not know the secret");
        assertThat(gate.numUnproven()).isLessThanOrEqualTo(1);
    }

    @Test
    void closingEndsTheWaiting() throws Exception {
        Thread closer =
                Thread.startVirtualThread(
                        () -> {
                            try {
                                gate.close();
                            } catch (IOException impossible) {
                                throw new AssertionError(impossible);
                            }
                        });
        assertThatThrownBy(gate::accept).isInstanceOf(SocketException.class);
        closer.join();
    }
}
