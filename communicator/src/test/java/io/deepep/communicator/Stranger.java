package io.deepep.communicator;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serial;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.jgroups.BytesMessage;
import org.jgroups.Message;
import org.jgroups.ObjectMessage;
import org.jgroups.Version;
import org.jgroups.stack.IpAddress;
import org.jgroups.util.ByteArrayDataOutputStream;
import org.jgroups.util.Util;

/** What a process without the secret sends to a rank's port: JGroups' own messages. */
final class Stranger {
    private static final byte[] COOKIE = {'b', 'e', 'l', 'a'};

    private Stranger() {}

    /** Counts how often one of it was read. */
    static final class Bait implements Serializable {
        static final AtomicInteger TAKEN = new AtomicInteger();

        @Serial private static final long serialVersionUID = 1;

        @Serial
        private Object readResolve() {
            TAKEN.incrementAndGet();
            return this;
        }
    }

    static Socket connect(int port) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoLinger(true, 0); // leaves nothing behind when it closes
        return socket;
    }

    /** Connects as fast as a loop does and says nothing, until it is stopped. */
    static final class Flood implements AutoCloseable {
        private static final int MOST_OPEN = 300;

        private final Deque<Socket> open = new ArrayDeque<>();
        private final int port;
        private final CompletableFuture<Void> ended;
        private volatile boolean stopped;

        Flood(int port) {
            this.port = port;
            ended = CompletableFuture.runAsync(this::run, Thread.ofPlatform()::start);
        }

        private void run() {
            try {
                while (!stopped) {
                    open.add(connect(port));
                    if (open.size() > MOST_OPEN) {
                        open.remove().close();
                    }
                }
            } catch (IOException overwhelmed) {
                // Enough.
            }
        }

        /** Makes no more connections, and keeps those that there are. */
        void stop() {
            stopped = true;
            ended.join();
        }

        @Override
        public void close() throws IOException {
            stop();
            for (Socket connection : open) {
                connection.close();
            }
        }
    }

    /** What JGroups says first on a connection. */
    static byte[] greeting() throws IOException {
        IpAddress address = new IpAddress(InetAddress.getLoopbackAddress(), 1);
        ByteArrayDataOutputStream out = new ByteArrayDataOutputStream(64);
        out.write(COOKIE);
        out.writeShort(Version.version);
        out.writeShort(address.serializedSize());
        address.writeTo(out);
        return Arrays.copyOf(out.buffer(), out.position());
    }

    /** A message with its length in front, as on a connection. */
    static byte[] frame(Message message) throws IOException {
        ByteArrayDataOutputStream out = new ByteArrayDataOutputStream(256);
        Util.writeMessage(message, out, true);
        byte[] bytes = Arrays.copyOf(out.buffer(), out.position());
        return ByteBuffer.allocate(4 + bytes.length).putInt(bytes.length).put(bytes).array();
    }

    /** An object that runs code of its class when it is read. */
    static byte[] bait() throws IOException {
        return frame(new ObjectMessage(null, new Bait()));
    }

    /** Sets in sets: a few bytes that take for ever to read. */
    static byte[] nestedSets() throws IOException {
        Set<Object> root = new HashSet<>();
        Set<Object> one = root;
        Set<Object> other = new HashSet<>();
        for (int depth = 0; depth < 60; depth++) {
            Set<Object> left = new HashSet<>();
            Set<Object> right = new HashSet<>();
            left.add("leaf"); // so that the two differ
            one.add(left);
            one.add(right);
            other.add(left);
            other.add(right);
            one = left;
            other = right;
        }
        return frame(new ObjectMessage(null, root));
    }

    /** A message that claims to have a payload of {@code length} bytes. */
    static byte[] claim(int length) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(length + 100);
            byte[] message = frame(new BytesMessage(null, new byte[1]));
            out.write(message, 4, message.length - 5 - 4);
            out.writeInt(length);
            out.write(0);
        }
        return bytes.toByteArray();
    }

    /** Sends all of it, as far as somebody listens. */
    static void send(Socket socket, byte[]... parts) throws IOException {
        OutputStream out = socket.getOutputStream();
        try {
            for (byte[] part : parts) {
                out.write(part);
            }
        } catch (SocketException closed) {
            // That is an answer too.
        }
    }

    /** Waits until the other end closes the connection; how many bytes it has said before. */
    static int awaitClosed(Socket socket) throws IOException {
        int said = 0;
        try {
            while (socket.getInputStream().read() >= 0) {
                said++;
            }
        } catch (SocketException reset) {
            return said;
        }
        return said;
    }
}
