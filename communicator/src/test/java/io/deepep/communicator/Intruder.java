package io.deepep.communicator;

import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.util.Arrays;
import org.jgroups.util.UUID;

/** A process that proves the secret like a rank and then says what it wants, byte by byte. */
final class Intruder implements AutoCloseable {
    private final Socket socket;
    private final Frames frames;
    private final byte[] frame =
            new byte[Frames.HEADER_BYTES + Frames.MAX_PLAIN_BYTES + Frames.TAG_BYTES];

    private Intruder(Socket socket, Frames frames) {
        this.socket = socket;
        this.frames = frames;
    }

    static Intruder connect(int port, UUID address) throws IOException {
        Socket socket = Stranger.connect(port);
        Proof proof = new Proof(true, Groups.SECRET, address);
        OutputStream out = socket.getOutputStream();
        out.write(proof.hello());
        proof.greet(read(socket, Proof.HELLO_BYTES));
        out.write(proof.proof());
        if (!proof.accepts(read(socket, Proof.PROOF_BYTES))) {
            throw new IOException("not accepted");
        }
        return new Intruder(socket, new Frames(proof.sendKey()));
    }

    private static byte[] read(Socket socket, int length) throws IOException {
        byte[] bytes = socket.getInputStream().readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException();
        }
        return bytes;
    }

    Socket socket() {
        return socket;
    }

    /** A sealed frame, as it goes over the wire. */
    byte[] seal(byte kind, byte[] plain) {
        int length = frames.seal(kind, plain, 0, plain.length, frame);
        return Arrays.copyOf(frame, length);
    }

    void say(byte[]... parts) throws IOException {
        for (byte[] part : parts) {
            Stranger.send(socket, seal(Frames.DATA, part));
        }
    }

    /** Ends the connection as the end of a process does. */
    @Override
    public void close() throws IOException {
        socket.close();
    }
}
