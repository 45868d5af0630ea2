package io.deepep.communicator;

import io.deepep.Communicator;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;

/**
 * A group whose ranks are processes, on one host or several. Rank 0 listens at the master address,
 * the others join it there; then every rank has a connection to every other one. All that is sent
 * is encrypted and authenticated with the shared secret.
 *
 * <p>Exchanges are matched by their number. One that failed by a timeout counts, so ranks that make
 * the same calls stay together; a rank that has gone does not come back, and exchanges without it
 * fail at once.
 *
 * <pre>{@code
 * ProcessEnvironment environment = ProcessEnvironment.from(System.getenv());
 * try (Communicator communicator = ProcessCommunicator.open(environment, Duration.ofMinutes(1))) { ... }
 * }</pre>
 */
public final class ProcessCommunicator implements Communicator {
    static final String START = "communicator start";
    private static final String EXCHANGE = "communicator exchange";
    private static final byte MESSAGE = 1;
    private static final byte FAREWELL = 2;
    private static final byte FAREWELL_RECEIVED = 3;
    private static final int HEADER_BYTES = 1 + Long.BYTES;
    private static final Duration FAREWELL_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

    private final ProcessEnvironment environment;
    private final Exchange exchange;
    private final JChannel channel;

    private ProcessCommunicator(ProcessEnvironment environment, JChannel channel) {
        this.environment = environment;
        this.channel = channel;
        exchange = new Exchange(environment.rank(), environment.size());
        channel.setReceiver(new Inbox());
    }

    /**
     * Joins the group and waits until all its ranks are there.
     *
     * @param timeout how long to wait for the others
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     * @throws RankMismatchException if the group refuses this process: another secret or size, or a
     *     rank that is taken
     * @throws DeepEpUnavailableException if the master address cannot be resolved or listened at
     */
    public static ProcessCommunicator open(ProcessEnvironment environment, Duration timeout) {
        long start = System.nanoTime();
        InetAddress master = resolve(environment);
        ProcessCommunicator communicator;
        try {
            JChannel channel = GroupChannel.create(environment, master, start, timeout.toNanos());
            communicator = new ProcessCommunicator(environment, channel);
        } catch (Exception failure) {
            throw explain(environment, failure);
        }
        try {
            communicator.channel.connect("deepep");
            communicator.exchange.awaitAllJoined(start, timeout.toNanos());
            // The first exchange shows that messages pass between any two ranks, and connects them.
            communicator.allGather(new byte[0], START, start, timeout.toNanos());
            return communicator;
        } catch (Exception failure) {
            communicator.close();
            throw explain(environment, failure);
        }
    }

    private static InetAddress resolve(ProcessEnvironment environment) {
        try {
            InetAddress master = InetAddress.getByName(environment.masterAddress());
            if (environment.secret().isEmpty() && !master.isLoopbackAddress()) {
                throw new IllegalArgumentException(
                        "MASTER_ADDR="
                                + environment.masterAddress()
                                + " is not a loopback address and DEEPEP_SECRET is not set;"
                                + " set DEEPEP_SECRET to the same"
                                + " random text on every rank (openssl rand -hex 32), so that strangers cannot join");
            }
            return master;
        } catch (UnknownHostException unknown) {
            throw new DeepEpUnavailableException(
                    "MASTER_ADDR=" + environment.masterAddress() + " cannot be resolved",
                    "set it to the host name or address of rank 0's host",
                    unknown);
        }
    }

    private static RuntimeException explain(ProcessEnvironment environment, Exception failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            switch (cause) {
                case DeepEpException known -> {
                    return known;
                }
                case SecurityException refusal -> {
                    return new RankMismatchException(refusal.getMessage());
                }
                case BindException taken -> {
                    return cannotListen(environment, taken);
                }
                default -> {}
            }
        }
        return failure instanceof RuntimeException unchecked
                ? unchecked
                : new DeepEpUnavailableException(
                        "rank "
                                + environment.rank()
                                + " cannot open its connections: "
                                + failure.getMessage(),
                        "check MASTER_ADDR, MASTER_PORT and the network between the hosts",
                        failure);
    }

    private static RuntimeException cannotListen(
            ProcessEnvironment environment, BindException taken) {
        String place = environment.masterAddress() + ":" + environment.masterPort();
        return environment.rank() == 0
                ? new DeepEpUnavailableException(
                        "rank 0 cannot listen at " + place + " (" + taken.getMessage() + ")",
                        "run rank 0, and only one, on the host of MASTER_ADDR, and choose a MASTER_PORT that is free",
                        taken)
                : new DeepEpUnavailableException(
                        "rank "
                                + environment.rank()
                                + " cannot listen at the address from which it reaches "
                                + place,
                        "check this host's network",
                        taken);
    }

    @Override
    public int rank() {
        return environment.rank();
    }

    @Override
    public int size() {
        return environment.size();
    }

    @Override
    public int localRank() {
        return environment.localRank();
    }

    @Override
    public int localSize() {
        return environment.localSize();
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        return allGather(message, EXCHANGE, System.nanoTime(), timeout.toNanos());
    }

    private List<byte[]> allGather(byte[] message, String phase, long start, long timeoutNanos) {
        long round = exchange.enter();
        try {
            exchange.receive(rank(), round, message.clone());
            sendToOthers(MESSAGE, round, message);
            return exchange.await(round, phase, start, timeoutNanos);
        } finally {
            exchange.leave();
        }
    }

    /**
     * To each by itself: JGroups sends what got lost again at once, where of a multicast message it
     * first has to find out that there was one.
     */
    private void sendToOthers(byte kind, long round, byte[] payload, Message.Flag... flags) {
        for (Address member : channel.getView()) {
            if (RankAddress.rank(member) != rank()) {
                send(member, kind, round, payload, flags);
            }
        }
    }

    private void send(
            Address destination, byte kind, long round, byte[] payload, Message.Flag... flags) {
        ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + payload.length);
        frame.put(kind).putLong(round).put(payload);
        try {
            channel.send(new BytesMessage(destination, frame.array()).setFlag(flags));
        } catch (Exception failure) {
            throw new IllegalStateException(
                    "the communicator of rank " + rank() + " cannot send", failure);
        }
    }

    /** Whether {@code rank} is a member of the group, as far as failure detection knows. */
    @Override
    public boolean isAlive(int rank) {
        return exchange.isAlive(Objects.checkIndex(rank, size()));
    }

    /**
     * Leaves the group. Does not wait for calls of the others, only, for two seconds at most, until
     * what this rank sent has reached them.
     */
    @Override
    public void close() {
        if (!exchange.close()) {
            return;
        }
        // On a thread of its own: a connection to a process that hangs may block.
        Thread closing =
                Thread.ofPlatform().daemon().name("deepep-close-" + rank()).start(this::leave);
        try {
            closing.join(CLOSE_TIMEOUT);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void leave() {
        try {
            if (channel.isConnected()) {
                sendToOthers(FAREWELL, 0, new byte[0], Message.Flag.NO_FC);
                exchange.awaitFarewells(FAREWELL_TIMEOUT.toNanos());
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } finally {
            channel.close();
        }
    }

    @Override
    public String toString() {
        return "process rank " + rank() + " of " + size();
    }

    /** What arrives: called by JGroups' threads, in order for each sender. */
    private final class Inbox implements Receiver {
        @Override
        public void viewAccepted(View view) {
            BitSet members = new BitSet();
            for (Address member : view) {
                members.set(RankAddress.rank(member));
            }
            exchange.setMembers(members);
        }

        @Override
        public void receive(Message message) {
            int peer = RankAddress.rank(message.getSrc());
            byte[] frame = message.getArray();
            int offset = message.getOffset();
            switch (frame[offset]) {
                case MESSAGE -> {
                    long round = ByteBuffer.wrap(frame).getLong(offset + 1);
                    int end = offset + message.getLength();
                    exchange.receive(
                            peer, round, Arrays.copyOfRange(frame, offset + HEADER_BYTES, end));
                }
                case FAREWELL -> {
                    exchange.setGone(peer);
                    send(message.getSrc(), FAREWELL_RECEIVED, 0, new byte[0], Message.Flag.NO_FC);
                }
                case FAREWELL_RECEIVED -> exchange.setFarewellReceived(peer);
                default ->
                        throw new IllegalStateException(
                                "message of unknown kind from rank " + peer);
            }
        }
    }
}
