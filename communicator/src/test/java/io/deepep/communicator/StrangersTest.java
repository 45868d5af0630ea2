package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Processes without the secret at the ports of ranks, while a job starts and while it runs. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StrangersTest {
    private final List<Socket> connections = new ArrayList<>();

    @AfterEach
    void hangUp() throws IOException {
        for (Socket connection : connections) {
            connection.close();
        }
    }

    private Socket connect(int port) throws IOException {
        Socket connection = Stranger.connect(port);
        connections.add(connection);
        return connection;
    }

    /** Connects as soon as somebody listens. */
    private Socket connectWhenOpen(int port) throws Exception {
        while (true) {
            try {
                return connect(port);
            } catch (IOException notYet) {
                Thread.sleep(20);
            }
        }
    }

    private void attack(int port) throws Exception {
        int before = Stranger.Bait.TAKEN.get();
        Socket object = connectWhenOpen(port);
        Stranger.send(object, Stranger.greeting(), Stranger.bait());
        assertThat(Stranger.awaitClosed(object)).as("bytes that a stranger is told").isZero();
        assertThat(Stranger.Bait.TAKEN).hasValue(before);
        for (int i = 0; i < 2; i++) {
            Socket sets = connect(port);
            Stranger.send(sets, Stranger.greeting(), Stranger.nestedSets());
            Stranger.awaitClosed(sets);
        }
        for (int i = 0; i < 4; i++) {
            Socket claim = connect(port);
            Stranger.send(claim, Stranger.greeting(), Stranger.claim(120 << 20));
            Stranger.awaitClosed(claim);
        }
    }

    @Test
    void theirObjectsAndLengthsAreNotReadWhileAJobStarts() throws Exception {
        int port = LoopbackPorts.free();
        CompletableFuture<ProcessCommunicator> zero = Groups.opening(0, 2, port);
        attack(port);
        ProcessCommunicator one = Groups.opening(1, 2, port).join();
        List<ProcessCommunicator> group = List.of(zero.join(), one);
        attack(port);
        Groups.barrier(group);
        Groups.closeAll(group);
    }

    @Test
    void silenceDoesNotKeepAJobFromStarting() throws Exception {
        int port = LoopbackPorts.free();
        CompletableFuture<ProcessCommunicator> zero = Groups.opening(0, 3, port);
        connectWhenOpen(port);
        for (int i = 0; i < 400; i++) {
            connect(port);
        }
        CompletableFuture<ProcessCommunicator> one = Groups.opening(1, 3, port);
        for (int i = 0; i < 400; i++) {
            connect(port);
        }
        CompletableFuture<ProcessCommunicator> two = Groups.opening(2, 3, port);
        List<ProcessCommunicator> group = List.of(zero.join(), one.join(), two.join());
        Groups.barrier(group);
        Groups.closeAll(group);
    }

    /** As many as a loop of connections makes, all the time that ranks come in. */
    @Test
    void aFloodDoesNotKeepAJobFromStarting() throws Exception {
        int port = LoopbackPorts.free();
        CompletableFuture<ProcessCommunicator> zero = Groups.opening(0, 2, port);
        connectWhenOpen(port);
        try (Stranger.Flood flood = new Stranger.Flood(port)) {
            ProcessCommunicator one = Groups.opening(1, 2, port).join();
            List<ProcessCommunicator> group = List.of(zero.join(), one);
            flood.stop();
            Groups.barrier(group);
            Groups.closeAll(group);
        } catch (CompletionException keptOut) {
            throw new AssertionError(keptOut);
        }
    }
}
