package io.deepep.communicator;

import io.deepep.error.Departure;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jgroups.util.DefaultSocketFactory;
import org.jgroups.util.UUID;
import org.jgroups.util.Util;

/**
 * What all connections of a rank have in common: the secret, who the rank is, and the exchange that
 * learns from them who is gone. JGroups gets its sockets here, so that nothing reaches it that does
 * not come from a process with the secret.
 */
final class Door extends DefaultSocketFactory {
    private static final Duration TELL_TIMEOUT = Duration.ofSeconds(1);

    private final String secret;
    private final UUID address;
    private final Exchange exchange;
    private final Set<SealedSocket> open = ConcurrentHashMap.newKeySet();
    private volatile String refusal;

    /** Connections that this rank could not make, the earliest first. */
    private final Map<InetSocketAddress, String> failures =
            Collections.synchronizedMap(new LinkedHashMap<>());

    Door(String secret, UUID address, Exchange exchange) {
        this.secret = secret;
        this.address = address;
        this.exchange = exchange;
    }

    String secret() {
        return secret;
    }

    UUID address() {
        return address;
    }

    @Override
    public Socket createSocket(String service) {
        return new SealedSocket(this);
    }

    @Override
    public ServerSocket createServerSocket(String service) throws IOException {
        return new GuardedServerSocket(this);
    }

    /** Notes what this rank and one that it connected to do not have in common. */
    void setRefused(String why) {
        refusal = why;
    }

    /** Why another rank refused this one, or null. */
    String refusal() {
        return refusal;
    }

    /** Notes why this rank could not connect to another. */
    void setFailed(InetSocketAddress to, String why) {
        failures.put(to, why);
    }

    /** Notes that this rank has connected to another. */
    void setReached(InetSocketAddress to) {
        failures.remove(to);
    }

    /** Why this rank cannot connect there, in parentheses, or nothing. */
    String failure(InetSocketAddress to) {
        String why = failures.get(to);
        return why == null ? "" : " (" + why + ")";
    }

    /** The connection that has failed for longest, and why, in parentheses, or nothing. */
    String failure() {
        synchronized (failures) {
            return failures.entrySet().stream()
                    .findFirst()
                    .map(
                            first ->
                                    " (no connection to %s: %s)"
                                            .formatted(place(first.getKey()), first.getValue()))
                    .orElse("");
        }
    }

    /** An address as messages name it. */
    static String place(InetSocketAddress address) {
        return address.getAddress().getHostAddress() + " port " + address.getPort();
    }

    void add(SealedSocket socket) {
        open.add(socket);
    }

    void remove(SealedSocket socket) {
        open.remove(socket);
    }

    /** A connection ended without a word. */
    void lost(UUID peer) {
        exchange.connectionLost(peer);
    }

    /**
     * {@code peer} says that a rank is gone. While a group meets, not all ranks are connected, but
     * all are to rank 0, which passes news on before it reads anything else of {@code peer}: what a
     * rank that fails has to say is known everywhere before the group is seen without it.
     */
    void heard(UUID peer, byte[] frame) {
        Departure departure = decode(frame);
        if (exchange.heard(peer, departure) && RankAddress.rank(address) == 0) {
            tellAll(List.of(departure));
        }
    }

    /** Tells everybody to whom there is a connection, and waits a little until they have it. */
    void tellAll(List<Departure> departures) {
        List<byte[]> frames = departures.stream().map(Door::encode).toList();
        List<Runnable> telling = new ArrayList<>();
        for (SealedSocket socket : open) {
            telling.add(() -> tell(socket, frames));
        }
        Errands.runAll(telling, TELL_TIMEOUT);
    }

    /**
     * Does not wait: where the other end has stopped, saying that this is the end takes a while.
     */
    void closeAll() {
        for (SealedSocket socket : open) {
            Errands.start(() -> Util.close(socket));
        }
    }

    private static void tell(SealedSocket socket, List<byte[]> frames) {
        try {
            for (byte[] frame : frames) {
                socket.tell(frame);
            }
        } catch (IOException gone) {
            // Who is gone need not know.
        }
    }

    private static byte[] encode(Departure departure) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(departure.rank());
            out.writeBoolean(departure.isOrderly());
            out.writeInt(departure.blamed());
            out.writeUTF(departure.reason());
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    private static Departure decode(byte[] frame) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(frame))) {
            int rank = in.readInt();
            boolean orderly = in.readBoolean();
            int blamed = in.readInt();
            return new Departure(rank, in.readUTF(), orderly, blamed);
        } catch (IOException malformed) {
            throw new UncheckedIOException(malformed);
        }
    }
}
