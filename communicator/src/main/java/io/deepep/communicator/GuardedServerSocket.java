package io.deepep.communicator;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Predicate;
import org.jgroups.util.Util;

/**
 * The port of a rank: hands out connections only after they have proven the secret. Those that have
 * not are few, each has a thread and little time, and when there are too many, the one that has
 * waited longest goes: strangers who say nothing do not keep a rank out, who proves itself in an
 * instant and otherwise comes again.
 */
final class GuardedServerSocket extends ServerSocket {
    private static final int BACKLOG = 1024;
    private static final int MAX_UNPROVEN = 512;
    private static final int MAX_UNPROVEN_PER_ADDRESS = 128;
    private static final long BREATH_MILLIS = 10;

    private final Door door;

    /** The oldest first; guarded by itself. */
    private final Set<SealedSocket> unproven = new LinkedHashSet<>();

    private final BlockingQueue<SealedSocket> proven = new LinkedBlockingQueue<>();

    /** Wakes {@link #accept} when the gate closes. */
    private final SealedSocket nobody;

    GuardedServerSocket(Door door) throws IOException {
        this.door = door;
        nobody = new SealedSocket(door);
    }

    @Override
    public void bind(SocketAddress endpoint, int backlog) throws IOException {
        super.bind(endpoint, BACKLOG);
        Thread.ofPlatform().daemon().name("deepep-gate-" + getLocalPort()).start(this::work);
    }

    /** Waits for the next connection that has proven the secret. */
    @Override
    public Socket accept() throws IOException {
        try {
            SealedSocket next = proven.take();
            if (next != nobody) {
                return next;
            }
            proven.add(nobody);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        throw new SocketException("the port is closed");
    }

    @Override
    public void close() throws IOException {
        super.close();
        proven.add(nobody);
        List<SealedSocket> waiting;
        synchronized (unproven) {
            waiting = new ArrayList<>(unproven);
        }
        waiting.addAll(proven);
        waiting.forEach(Util::close);
    }

    private void work() {
        while (!isClosed()) {
            SealedSocket socket = new SealedSocket(door);
            try {
                implAccept(socket);
                enter(socket);
                if (!Errands.start(() -> admit(socket))) {
                    sendAway(socket);
                    recover();
                }
            } catch (IOException failure) {
                recover();
            }
        }
    }

    /** From running out of descriptors, or of threads. */
    private void recover() {
        if (isClosed()) {
            return;
        }
        synchronized (unproven) {
            sendAwayOldest(socket -> true);
        }
        try {
            Thread.sleep(BREATH_MILLIS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void enter(SealedSocket socket) {
        InetAddress address = socket.getInetAddress();
        Predicate<SealedSocket> neighbour = other -> address.equals(other.getInetAddress());
        synchronized (unproven) {
            if (unproven.stream().filter(neighbour).count() >= MAX_UNPROVEN_PER_ADDRESS) {
                sendAwayOldest(neighbour);
            } else if (unproven.size() >= MAX_UNPROVEN) {
                sendAwayOldest(other -> true);
            }
            unproven.add(socket);
        }
    }

    private void sendAwayOldest(Predicate<SealedSocket> which) {
        unproven.stream().filter(which).findFirst().ifPresent(this::sendAway);
    }

    private void sendAway(SealedSocket socket) {
        release(socket);
        Util.close(socket);
    }

    private void admit(SealedSocket socket) {
        try {
            socket.admit(() -> release(socket));
            proven.add(socket);
            if (isClosed()) {
                Util.close(socket);
            }
        } catch (IOException | RuntimeException stranger) {
            Util.close(socket);
        } finally {
            release(socket);
        }
    }

    /**
     * Takes a connection out of those that may be sent away. Whoever is told that it has proven the
     * secret is not among them: it would take the loss of the connection for the end of this rank.
     * Returns false if the connection was out already.
     */
    private boolean release(SealedSocket socket) {
        synchronized (unproven) {
            return unproven.remove(socket);
        }
    }

    /** How many connections have yet to prove the secret. */
    int numUnproven() {
        synchronized (unproven) {
            return unproven.size();
        }
    }
}
