package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jgroups.stack.IpAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeshTransportTest {
    /** As a process that has stopped: its host takes connections, and nobody reads from them. */
    @Test
    void nobodyWaitsForOneWhoDoesNotAnswer() throws Exception {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        List<ProcessCommunicator> group = Groups.open(2);
        try (ServerSocket silent = new ServerSocket(0, 1, loopback)) {
            group.get(0)
                    .transport()
                    .sendUnicast(
                            new IpAddress(loopback, silent.getLocalPort()), new byte[100], 0, 100);
            try (Socket toSilent = silent.accept()) {
                Groups.each(2, rank -> group.get(rank).allGather(new byte[] {1}, Groups.LONG));
                // It has greeted, and waits still: it neither says more nor has given up.
                toSilent.getInputStream().readNBytes(Proof.HELLO_BYTES);
                toSilent.setSoTimeout(1);
                assertThatThrownBy(() -> toSilent.getInputStream().read())
                        .isInstanceOf(SocketTimeoutException.class);
            }
        }
        Groups.closeAll(group);
    }

    @Test
    void anOutboxSendsInOrderAndGoesOnAfterFailures() throws Exception {
        int frames = 5000;
        List<Integer> sent = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(1);
        Outbox outbox =
                new Outbox(
                        frame -> {
                            int number = frame[0] << 8 | (frame[1] & 0xff);
                            sent.add(number);
                            if (number == frames) {
                                done.countDown();
                            }
                            if (number % 7 == 0) {
                                throw new IllegalStateException("lost");
                            }
                            if (number % 11 == 0) {
                                throw new OutOfMemoryError("no thread for a new connection");
                            }
                        });
        for (int i = 1; i <= frames; i++) {
            while (outbox.isFull()) {
                Thread.onSpinWait();
            }
            outbox.add(new byte[] {(byte) (i >> 8), (byte) i});
        }
        done.await();
        assertThat(sent).hasSize(frames).isSorted();
    }

    /** What is too much is dropped; nothing grows without end. */
    @Test
    void anOutboxThatIsFullDropsWhatComes() throws Exception {
        CountDownLatch blocked = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        CountDownLatch last = new CountDownLatch(1);
        List<byte[]> sent = new ArrayList<>();
        Outbox outbox =
                new Outbox(
                        frame -> {
                            blocked.countDown();
                            released.await();
                            sent.add(frame);
                            if (frame.length == 1) {
                                last.countDown();
                            }
                        });
        outbox.add(new byte[2]);
        blocked.await();
        for (int i = 1; !outbox.isFull(); i++) {
            outbox.add(new byte[i == Outbox.MAX_FRAMES - 1 ? 1 : 2]);
        }
        outbox.add(new byte[3]);
        released.countDown();
        last.await();
        assertThat(sent).hasSize(Outbox.MAX_FRAMES);
    }
}
