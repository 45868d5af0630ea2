package io.deepep.communicator;

import io.deepep.Communicator;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.Departure;
import io.deepep.error.RankMismatchException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.StreamSupport;
import org.jgroups.Address;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.jgroups.protocols.TP;
import org.jgroups.util.UUID;

/**
 * One rank's end of a group whose ranks are processes, on one or several hosts. Rank 0 listens at
 * the master address, and the others join it there; then every rank connects to every other. On
 * each connection, both ends first prove that they know the shared secret, and read nothing before
 * that; everything that follows is encrypted and authenticated.
 *
 * <p>Collective calls are matched by their number. A call that timed out counts, so that ranks that
 * make the same calls stay in step. A rank that is gone does not come back, and calls that need it
 * fail at once. If its process was only stopped, its own calls fail at once too.
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
    private static final byte WHOM_DO_YOU_AWAIT = 4;
    private static final byte AWAITED = 5;
    private static final byte YOU_ARE_EXCLUDED = 6;
    private static final Duration FAREWELL_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration CUT_OFF_TIMEOUT = Duration.ofSeconds(4);
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

    private final ProcessEnvironment environment;
    private final Exchange exchange;
    private final Door door;
    private final JChannel channel;
    private final Sender sender;

    private ProcessCommunicator(
            ProcessEnvironment environment, InetAddress master, long start, long timeoutNanos)
            throws Exception {
        SystemLog.takeOver(); // first: classes of JGroups keep the logger that they start with
        this.environment = environment;
        int rank = environment.rank();
        int size = environment.size();
        UUID address = RankAddress.create(rank, size);
        exchange = new Exchange(rank, size, address);
        door = new Door(environment.secret(), address, exchange);
        channel =
                GroupChannel.create(
                        environment,
                        master,
                        door,
                        new AdmissionProtocol(
                                rank,
                                size,
                                new InetSocketAddress(master, environment.masterPort()),
                                door,
                                exchange,
                                start,
                                timeoutNanos));
        sender = new Sender(rank, channel);
        channel.setReceiver(new Inbox());
    }

    /**
     * Joins the group and waits until all ranks have joined. Collective.
     *
     * @param environment this process's rank, and where the group meets
     * @param timeout how long to wait for the others
     * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is named
     * @throws RankMismatchException if the group refuses this process because its secret or size
     *     differs, or its rank is taken
     * @throws DeepEpUnavailableException if the master address cannot be resolved or reached, rank
     *     0 cannot listen there, or Java lacks what connections are sealed with
     */
    public static ProcessCommunicator open(ProcessEnvironment environment, Duration timeout) {
        long start = System.nanoTime();
        long timeoutNanos = nanos(timeout);
        InetAddress master = MasterAddress.find(environment, start, timeoutNanos);
        // Or else threads of connections would fail, where nobody hears of it.
        Proof.requireAlgorithms();
        ProcessCommunicator communicator;
        try {
            communicator = new ProcessCommunicator(environment, master, start, timeoutNanos);
        } catch (Exception failure) {
            throw explain(environment, failure);
        }
        try {
            communicator.channel.connect("deepep");
            Supplier<String> phase = () -> START + communicator.door.failure();
            communicator.exchange.awaitAllJoined(phase, start, timeoutNanos);
            // The first exchange shows that messages pass between any two ranks, and connects them.
            communicator.allGather(new byte[0], phase, start, timeoutNanos);
            communicator.exchange.setComplete();
            return communicator;
        } catch (Exception failure) {
            RuntimeException explained = explain(environment, failure);
            if (explained instanceof RankMismatchException) {
                communicator.close(); // it was never one of them
            } else {
                communicator.fail(explained);
            }
            if (explained.getCause() instanceof InterruptedException) {
                Thread.currentThread().interrupt(); // whoever was waited with may have cleared it
            }
            throw explained;
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
                        "rank %s cannot open its connections: %s"
                                .formatted(environment.rank(), failure.getMessage()),
                        "check MASTER_ADDR, MASTER_PORT and the network between the hosts",
                        failure);
    }

    private static RuntimeException cannotListen(
            ProcessEnvironment environment, BindException taken) {
        String place = environment.masterAddress() + ":" + environment.masterPort();
        return environment.rank() == 0
                ? new DeepEpUnavailableException(
                        "rank 0 cannot listen at "
                                + place
                                + ": the port is taken or reserved, or this is not the address of this host",
                        "start exactly one rank 0, on the host of MASTER_ADDR, and choose a free MASTER_PORT",
                        taken)
                : new DeepEpUnavailableException(
                        "rank %s cannot listen at the address from which it reaches %s"
                                .formatted(environment.rank(), place),
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
        Objects.requireNonNull(message, "message");
        long timeoutNanos = nanos(timeout);
        return allGather(message, () -> EXCHANGE, System.nanoTime(), timeoutNanos);
    }

    /** Of any time-out, even forever. */
    private static long nanos(Duration timeout) {
        return TimeUnit.NANOSECONDS.convert(Objects.requireNonNull(timeout, "timeout"));
    }

    private List<byte[]> allGather(
            byte[] message, Supplier<String> phase, long start, long timeoutNanos) {
        long round = exchange.enter();
        try {
            exchange.receive(rank(), round, message.length, message, 0, message.length);
            sender.sendMessage(MESSAGE, round, message);
            return exchange.await(
                    round, phase, start, timeoutNanos, missing -> askWhomTheyAwait(missing, round));
        } finally {
            exchange.leave();
        }
    }

    /**
     * On a thread of its own: the caller holds the lock that whoever brings messages takes. Without
     * a thread it waits on all the same; who is to blame is then known less well.
     */
    private void askWhomTheyAwait(BitSet peers, long round) {
        View members = channel.getView();
        Errands.start(
                () -> {
                    for (Address member : members) {
                        if (peers.get(RankAddress.rank(member))) {
                            try {
                                sender.sendShort(member, WHOM_DO_YOU_AWAIT, round);
                            } catch (IllegalStateException closedMeanwhile) {
                                return;
                            }
                        }
                    }
                });
    }

    /** Whether {@code rank} is a member of the group, as far as failure detection knows. */
    @Override
    public boolean isAlive(int rank) {
        return exchange.isAlive(Objects.checkIndex(rank, size()));
    }

    @Override
    public List<Departure> departures() {
        return exchange.departures();
    }

    @Override
    public Runnable onDeparture(Runnable action) {
        return exchange.onDeparture(action);
    }

    @Override
    public void fail(Throwable cause) {
        if (exchange.close()) {
            List<Departure> known = new ArrayList<>(exchange.departures());
            known.add(Departure.failed(rank(), cause));
            closeBy(
                    () -> {
                        door.tellAll(known);
                        channel.close();
                    });
        }
    }

    /**
     * Leaves the group. Does not wait for calls of the other ranks; waits at most two seconds until
     * they have received what this rank sent.
     */
    @Override
    public void close() {
        if (exchange.close()) {
            closeBy(this::leave);
        }
    }

    /** On a thread of its own: a connection to a process that hangs may block. */
    private void closeBy(Runnable leaving) {
        Thread closing =
                Thread.ofPlatform().daemon().name("deepep-close-" + rank()).unstarted(leaving);
        try {
            closing.start();
        } catch (OutOfMemoryError noThread) {
            leaving.run();
            return;
        }
        Errands.start(() -> cutOff(closing));
        try {
            closing.join(CLOSE_TIMEOUT);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends the connections if closing takes long: JGroups waits for whoever writes to them. */
    private void cutOff(Thread closing) {
        try {
            if (!closing.join(CUT_OFF_TIMEOUT)) {
                door.closeAll();
            }
        } catch (InterruptedException impossible) {
            Thread.currentThread().interrupt();
        }
    }

    private void leave() {
        try {
            if (channel.isConnected()) {
                sender.sendToOthersInTurn(FAREWELL, 0, new byte[0], Message.Flag.NO_FC);
                exchange.awaitFarewells(FAREWELL_TIMEOUT.toNanos());
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } finally {
            channel.close();
        }
    }

    /** For tests. */
    TP transport() {
        return channel.getProtocolStack().getTransport();
    }

    @Override
    public String toString() {
        return "process rank " + rank() + " of " + size();
    }

    /** What arrives: called by JGroups' threads, in order for each sender. */
    private final class Inbox implements Receiver {
        @Override
        public void viewAccepted(View view) {
            exchange.setMembers(
                    StreamSupport.stream(view.spliterator(), false).map(UUID.class::cast).toList());
        }

        @Override
        public void receive(Message message) {
            int peer = RankAddress.rank(message.getSrc());
            byte[] frame = message.getArray();
            int offset = message.getOffset();
            ByteBuffer fields = ByteBuffer.wrap(frame, offset, message.getLength());
            byte kind = fields.get();
            boolean takesPart = kind == MESSAGE || kind == WHOM_DO_YOU_AWAIT;
            if (takesPart && Departure.of(exchange.departures(), peer) != null) {
                // It was stopped for too long, and would wait for the others in vain.
                sender.sendShort(message.getSrc(), YOU_ARE_EXCLUDED, 0);
            }
            switch (kind) {
                case MESSAGE ->
                        exchange.receive(
                                peer,
                                fields.getLong(),
                                fields.getInt(),
                                frame,
                                fields.position(),
                                fields.remaining());
                case FAREWELL -> {
                    exchange.depart(Departure.left(peer));
                    sender.sendShort(message.getSrc(), FAREWELL_RECEIVED, 0);
                }
                case FAREWELL_RECEIVED -> exchange.setFarewellReceived(peer);
                case WHOM_DO_YOU_AWAIT -> {
                    ByteBuffer answer =
                            ByteBuffer.allocate(Integer.BYTES).putInt(exchange.awaited());
                    sender.sendShort(message.getSrc(), AWAITED, fields.getLong(), answer.array());
                }
                case AWAITED -> {
                    long round = fields.getLong();
                    fields.getInt(); // the length
                    exchange.setAwaited(peer, round, fields.getInt());
                }
                case YOU_ARE_EXCLUDED -> exchange.setExcluded(peer);
                default ->
                        throw new IllegalStateException(
                                "rank " + peer + " sent a message of unknown kind");
            }
        }
    }
}
