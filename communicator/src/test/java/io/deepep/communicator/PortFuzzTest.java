package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.net.Socket;
import java.util.List;
import java.util.Random;
import org.jgroups.BytesMessage;
import org.jgroups.util.UUID;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Mutated bytes at the port of a rank: of what JGroups says, of the proof, and of sealed frames on
 * their way. A connection may end by it, and nothing else happens.
 */
class PortFuzzTest {
    private static final int SESSION = 64;
    private static final byte[] MESSAGE = new byte[300];

    private final Random random = new Random(20261122);

    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void thousands() throws Exception {
        fuzz(4_000);
    }

    @Test
    @Tag("slow")
    @Timeout(value = 3600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aMillion() throws Exception {
        fuzz(1_000_000);
    }

    private void fuzz(int numFrames) throws Exception {
        int port = LoopbackPorts.free();
        List<ProcessCommunicator> group = Groups.open(2, port);
        int before = Stranger.Bait.TAKEN.get();
        for (int frame = 0; frame < numFrames; frame++) {
            switch (random.nextInt(3)) {
                case 0 -> foreign(port);
                case 1 -> proof(port);
                default -> {
                    tampered(port);
                    frame += SESSION;
                }
            }
            if (frame % 10_000 == 0) {
                Groups.barrier(group);
            }
        }
        Groups.barrier(group);
        assertThat(Stranger.Bait.TAKEN).hasValue(before);
        assertThat(group.get(0).departures()).isEmpty();
        assertThat(group.get(1).departures()).isEmpty();
        Groups.closeAll(group);
    }

    private byte[] mutate(byte[] bytes) {
        int changes = 1 + random.nextInt(4);
        for (int change = 0; change < changes; change++) {
            bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
        }
        return bytes;
    }

    private void foreign(int port) throws IOException {
        try (Socket socket = Stranger.connect(port)) {
            Stranger.send(socket, mutate(Stranger.greeting()), mutate(Stranger.bait()));
        }
    }

    private void proof(int port) throws IOException {
        Proof proof = new Proof(true, Groups.SECRET, RankAddress.create(random.nextInt(2), 2));
        try (Socket socket = Stranger.connect(port)) {
            byte[] hello = proof.hello().clone();
            Stranger.send(socket, random.nextBoolean() ? mutate(hello) : hello);
            byte[] proven = new byte[Proof.PROOF_BYTES];
            random.nextBytes(proven);
            Stranger.send(socket, proven);
        }
    }

    /** Somebody on the way changes, repeats, leaves out or cuts what a rank says. */
    private void tampered(int port) throws IOException {
        try (Intruder rank = Intruder.connect(port, new UUID(random.nextLong(), 2 << 16 | 1))) {
            rank.say(Stranger.greeting());
            for (int i = 0; i < SESSION; i++) {
                byte kind = (byte) random.nextInt(4);
                byte[] frame = rank.seal(kind, Stranger.frame(new BytesMessage(null, MESSAGE)));
                Stranger.send(rank.socket(), mutate(frame));
            }
        }
    }
}
