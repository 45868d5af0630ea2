package io.deepep.communicator;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.jgroups.util.UUID;

/**
 * A connection that is usable once both ends have proven the secret, see {@link Proof}; all that it
 * carries is sealed, see {@link Frames}.
 */
final class SealedSocket extends Socket {
    private static final Duration PROOF_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration LAST_WORD_TIMEOUT = Duration.ofMillis(200);

    private final Door door;
    private final AtomicBoolean closing = new AtomicBoolean();
    private volatile UUID peer;
    private volatile SealedInput in;
    private volatile SealedOutput out;

    SealedSocket(Door door) {
        this.door = door;
    }

    /** Connects, and proves the secret. */
    @Override
    public void connect(SocketAddress endpoint, int timeout) throws IOException {
        try {
            super.connect(endpoint, timeout);
            prove(endpoint);
        } catch (IOException failure) {
            door.setFailed((InetSocketAddress) endpoint, failure.getMessage());
            throw failure;
        }
        door.setReached((InetSocketAddress) endpoint);
    }

    private void prove(SocketAddress endpoint) throws IOException {
        Proof proof = new Proof(true, door.secret(), door.address());
        long deadline = deadline();
        OutputStream raw = super.getOutputStream();
        raw.write(proof.hello());
        if (!proof.greet(readHello(deadline))) {
            door.setRefused("run different versions of this library; run the same on all ranks");
            throw new IOException(endpoint + " is a rank of another version");
        }
        raw.write(proof.proof());
        byte[] answer = read(Proof.PROOF_BYTES, deadline);
        if (!proof.accepts(answer)) {
            if (Proof.isRefusal(answer)) {
                door.setRefused(
                        "have different secrets; give all ranks the same"
                                + " DEEPEP_SECRET, or the same DEEPEP_SECRET_FILE");
            }
            throw new IOException(endpoint + " does not know the secret of this group");
        }
        open(proof);
    }

    /**
     * As the server's end: lets the other end prove that it knows the secret. Before that it learns
     * nothing, unless it greets as a rank does.
     *
     * @param letIn asked once the other end has proven it, before it is told so; false if the
     *     connection has been given up meanwhile
     */
    void admit(BooleanSupplier letIn) throws IOException {
        Proof proof = new Proof(false, door.secret(), door.address());
        long deadline = deadline();
        OutputStream raw = super.getOutputStream();
        boolean same = proof.greet(readHello(deadline));
        raw.write(proof.hello());
        if (!same) {
            throw new IOException("a rank of another version");
        }
        boolean accepted = proof.accepts(read(Proof.PROOF_BYTES, deadline));
        if (accepted && !letIn.getAsBoolean()) {
            throw new IOException("there were too many connections");
        }
        raw.write(accepted ? proof.proof() : Proof.refusal());
        if (!accepted) {
            throw new IOException("a process with another secret");
        }
        open(proof);
    }

    /** Gives up at the first bytes that no rank would say. */
    private byte[] readHello(long deadline) throws IOException {
        byte[] magic = read(Proof.MAGIC_BYTES, deadline);
        if (!Proof.isMagic(magic)) {
            throw new IOException("the other end is no rank");
        }
        byte[] hello = Arrays.copyOf(magic, Proof.HELLO_BYTES);
        byte[] rest = read(Proof.HELLO_BYTES - Proof.MAGIC_BYTES, deadline);
        System.arraycopy(rest, 0, hello, Proof.MAGIC_BYTES, rest.length);
        return hello;
    }

    private static long deadline() {
        return System.nanoTime() + PROOF_TIMEOUT.toNanos();
    }

    /** Reads exactly {@code length} bytes before {@code deadline}, however slowly they come. */
    private byte[] read(int length, long deadline) throws IOException {
        InputStream raw = super.getInputStream();
        byte[] bytes = new byte[length];
        for (int done = 0; done < length; ) {
            long millis = (deadline - System.nanoTime()) / 1_000_000;
            if (millis <= 0) {
                throw new SocketTimeoutException("the other end did not prove the secret in time");
            }
            setSoTimeout((int) millis);
            int part = raw.read(bytes, done, length - done);
            if (part < 0) {
                throw new EOFException(
                        "the other end disconnected before it had proven the secret");
            }
            done += part;
        }
        return bytes;
    }

    private void open(Proof proof) throws IOException {
        setSoTimeout(0);
        peer = proof.peer();
        in =
                new SealedInput(
                        super.getInputStream(),
                        proof.receiveKey(),
                        departure -> door.heard(peer, departure),
                        this::lost);
        out = new SealedOutput(super.getOutputStream(), proof.sendKey());
        door.add(this);
        if (closing.get()) {
            door.remove(this);
        }
    }

    /** Who is at the other end. */
    UUID peer() {
        return peer;
    }

    @Override
    public InputStream getInputStream() throws IOException {
        return proven(in);
    }

    @Override
    public OutputStream getOutputStream() throws IOException {
        return proven(out);
    }

    private static <T> T proven(T stream) throws SocketException {
        if (stream == null) {
            throw new SocketException("the secret is not proven yet");
        }
        return stream;
    }

    /** Tells the other end who is gone. */
    void tell(byte[] departure) throws IOException {
        SealedOutput sealed = out;
        if (sealed != null) {
            sealed.writeDeparture(departure);
        }
    }

    /** Says that this is the end, if that can be said soon, and ends. */
    @Override
    public void close() throws IOException {
        if (!closing.compareAndSet(false, true)) {
            return;
        }
        door.remove(this);
        try {
            if (out != null) {
                sayEnd(out);
            }
        } finally {
            super.close();
        }
    }

    /** On a thread of its own, as the other end may have stopped reading. */
    private static void sayEnd(SealedOutput sealed) {
        Runnable saying =
                () -> {
                    try {
                        sealed.writeEnd();
                    } catch (IOException alreadyOver) {
                        // Nobody is there to be told.
                    }
                };
        Errands.runAll(List.of(saying), LAST_WORD_TIMEOUT);
    }

    private void lost() {
        if (!closing.get()) {
            door.lost(peer);
        }
    }
}
