package io.deepep.cuda.ibgda;

import io.deepep.Communicator;
import io.deepep.cuda.CudaContext;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Meeting;
import io.deepep.spi.Undo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntPredicate;
import java.util.function.Supplier;

/**
 * A rank's connections to peers by network cards that its kernels drive themselves (IBGDA): mlx5
 * cards, with the NVIDIA driver and rdma-core alone.
 *
 * <p>All ranks open, mend and admit together; what one cannot do, all learn. Closing waits for
 * nobody but the card, and gives everything back in the opposite order.
 */
public final class Ibgda implements AutoCloseable {
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private final Undo undo = new Undo();
    private final List<IbgdaNic> nics = new ArrayList<>();
    private final List<IbgdaGroup> groups = new ArrayList<>();
    private final List<CardAddress> addresses = new ArrayList<>();
    private final Duration timeout;
    private final Duration meetingTimeout;
    private boolean closed;

    private Ibgda(Duration timeout, Duration meetingTimeout) {
        this.timeout = timeout;
        this.meetingTimeout = meetingTimeout;
    }

    private static Meeting meeting(Communicator group, Duration limit) {
        return new Meeting(
                group,
                limit,
                "the network of the GPUs cannot be opened",
                "check the machine with deepep doctor");
    }

    /**
     * Opens and connects a rank's queue pairs: collective. Peers may be sent to when all ranks have
     * returned.
     *
     * @param memory zeroed where flags are
     * @param groups the same number on all ranks, in the same order
     * @throws DeepEpUnavailableException on every rank, if one cannot
     */
    public static Ibgda open(
            Communicator communicator,
            CudaContext context,
            IbgdaOptions options,
            IbgdaOptions.NetworkMemory memory,
            List<IbgdaOptions.Group> groups) {
        Ibgda opened = new Ibgda(options.timeout(), options.meetingTimeout());
        try {
            opened.meet(
                    communicator,
                    () -> opened.make(context, options, memory, groups).encode(),
                    opened::connect);
            return opened;
        } catch (RuntimeException | Error e) {
            opened.undo.close(e);
            throw e;
        }
    }

    /** What ranks that are new and those that take them in do in the same order. */
    private void meet(Communicator group, Supplier<String> address, Runnable connection) {
        Meeting meeting = meeting(group, meetingTimeout);
        List<CardAddress> all =
                meeting.together(address).stream().map(CardAddress::decode).toList();
        requireAsManyQueues(all);
        addresses.clear();
        addresses.addAll(all);
        meeting.step(connection);
    }

    /** Ranks find each other's queue pairs by their places. All see the same, so all throw. */
    private void requireAsManyQueues(List<CardAddress> all) {
        for (int i = 0; i < groups.size(); i++) {
            int first = groups.get(i).queuesPerPeer(all.getFirst(), i);
            for (int rank = 1; rank < all.size(); rank++) {
                int other = groups.get(i).queuesPerPeer(all.get(rank), i);
                if (other != first) {
                    throw new DeepEpUnavailableException(
                            "queue pairs to each peer: rank 0 has %s, rank %s has %s, and all ranks must have as many"
                                    .formatted(first, rank, other),
                            "give the GPUs of all ranks as many ports by nicMapping, and bring up all links of bonds;"
                                    + " deepep doctor lists both");
                }
            }
        }
    }

    /**
     * Takes in the memory and the queue pairs of new ranks, and connects all anew: collective with
     * their {@link #open}, while no kernel of this rank runs. Tables stay where they are, for
     * kernels and captured graphs. A new rank that does not come to its connection, or cannot be
     * connected to, leaves the others connected.
     */
    public void admit(Communicator group) {
        CardAddress own = addresses.get(group.rank());
        meet(
                group,
                () -> {
                    nics.forEach(IbgdaNic::requireActive);
                    return own.encode();
                },
                () -> {
                    groups.forEach(IbgdaGroup::reset);
                    connect();
                });
    }

    private CardAddress make(
            CudaContext context,
            IbgdaOptions options,
            IbgdaOptions.NetworkMemory memory,
            List<IbgdaOptions.Group> wanted) {
        for (IbgdaOptions.Port port : options.ports()) {
            IbgdaNic nic = IbgdaNic.open(context, port, memory, options);
            nics.add(undo.made(nic, IbgdaNic::close));
        }
        for (IbgdaOptions.Group group : wanted) {
            IbgdaGroup made = new IbgdaGroup(context, options, group, memory, nics);
            groups.add(undo.made(made, IbgdaGroup::close));
        }
        return new CardAddress(
                memory.address(),
                nics.stream()
                        .map(nic -> new CardAddress.Port(nic.endpoint(), nic.region().remoteKey()))
                        .toList(),
                groups.stream().map(IbgdaGroup::numbers).toList());
    }

    /** All that can be connected, whatever fails. */
    private void connect() {
        List<RuntimeException> failures = new ArrayList<>();
        for (int i = 0; i < groups.size(); i++) {
            failures.addAll(groups.get(i).connect(addresses, i));
        }
        Optional<RuntimeException> failure = first(failures);
        if (failure.isPresent()) {
            throw failure.get();
        }
    }

    /** The first, with the others as suppressed. */
    private static <E extends RuntimeException> Optional<E> first(List<E> failures) {
        failures.stream().skip(1).forEach(later -> failures.getFirst().addSuppressed(later));
        return failures.stream().findFirst();
    }

    /** What kernels of a group are given: {@code Network.queues}. */
    public long table(int group) {
        return groups.get(group).table();
    }

    /**
     * What queue pairs to some peers have reported: the first failure, with those of others as
     * suppressed. Names the peer, and the entry and the syndrome of an error completion.
     */
    public Optional<NativeCallException> failure(IntPredicate peers) {
        return first(groups.stream().flatMap(group -> group.failures(peers).stream()).toList());
    }

    /**
     * Waits until all that kernels of this rank have sent has arrived: once none of them runs.
     *
     * @return false if something failed, or is not there in time
     */
    public boolean quiet(Duration patience) {
        long deadline = System.nanoTime() + patience.toNanos();
        boolean all = true;
        for (IbgdaGroup group : groups) {
            all &= group.quiet(deadline);
        }
        return all;
    }

    /**
     * Waits until what this rank has sent has arrived; if queue pairs of any rank have failed,
     * connects those of all ranks anew, and what was under way is lost: collective, while no rank's
     * kernels send. May be called again if it fails, as where a port is still down.
     *
     * @throws DeepEpUnavailableException on every rank, if one cannot
     */
    public void mend(Communicator group) {
        String failed = "failed";
        // Others may be there long before one that waits for its card.
        Meeting first = meeting(group, meetingTimeout.plus(timeout));
        boolean any =
                first.together(() -> quiet(timeout) ? "" : failed).stream()
                        .anyMatch(failed::equals);
        if (any) {
            Meeting meeting = meeting(group, meetingTimeout);
            meeting.step(
                    () -> {
                        nics.forEach(IbgdaNic::requireActive);
                        groups.forEach(IbgdaGroup::reset);
                    });
            meeting.step(this::connect);
        }
    }

    /** Gives everything back, once no kernel of this rank runs and what it sent has arrived. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            try (undo) {
                quiet(FAREWELL);
            }
        }
    }
}
