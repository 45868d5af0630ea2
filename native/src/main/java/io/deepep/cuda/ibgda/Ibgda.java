package io.deepep.cuda.ibgda;

import io.deepep.Communicator;
import io.deepep.cuda.CudaContext;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Meeting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A rank's connections to peers by network cards that its kernels drive themselves (IBGDA): mlx5
 * cards, with the NVIDIA driver and rdma-core alone.
 *
 * <p>All ranks open and mend together; what one cannot do, all learn. Closing waits for nobody but
 * the card, and gives everything back in the opposite order.
 */
public final class Ibgda implements AutoCloseable {
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private final Meeting meeting;
    private final Undo undo = new Undo();
    private final List<IbgdaNic> nics = new ArrayList<>();
    private final List<IbgdaGroup> groups = new ArrayList<>();
    private final List<CardAddress> addresses = new ArrayList<>();
    private final Duration timeout;
    private boolean closed;

    private Ibgda(Communicator communicator, Duration timeout) {
        this.timeout = timeout;
        meeting =
                new Meeting(
                        communicator,
                        timeout,
                        "the network of the GPUs cannot be opened",
                        "check the machine with deepep doctor");
    }

    /**
     * Opens and connects a rank's queue pairs: collective. Peers may be sent to when all ranks have
     * returned.
     *
     * @param memory zeroed where flags are
     * @param groups the same number on all ranks, in the same order
     * @throws io.deepep.error.DeepEpUnavailableException on every rank, if one cannot
     */
    public static Ibgda open(
            Communicator communicator,
            CudaContext context,
            IbgdaOptions options,
            IbgdaOptions.NetworkMemory memory,
            List<IbgdaOptions.Group> groups) {
        Ibgda opened = new Ibgda(communicator, options.timeout());
        try {
            List<String> all =
                    opened.meeting.together(
                            () -> opened.make(context, options, memory, groups).encode());
            all.stream().map(CardAddress::decode).forEach(opened.addresses::add);
            opened.meeting.together(opened::connect);
            return opened;
        } catch (RuntimeException e) {
            opened.undo.close();
            throw e;
        }
    }

    private CardAddress make(
            CudaContext context,
            IbgdaOptions options,
            IbgdaOptions.NetworkMemory memory,
            List<IbgdaOptions.Group> wanted) {
        for (IbgdaOptions.Port port : options.ports()) {
            IbgdaNic nic = IbgdaNic.open(context, port, memory, options);
            nics.add(undo.made(nic, nic::close));
        }
        for (IbgdaOptions.Group group : wanted) {
            IbgdaGroup made = new IbgdaGroup(context, options, group, memory, nics);
            groups.add(undo.made(made, made::close));
        }
        return new CardAddress(
                memory.address(),
                nics.stream()
                        .map(nic -> new CardAddress.Port(nic.endpoint(), nic.region().remoteKey()))
                        .toList(),
                groups.stream().map(IbgdaGroup::numbers).toList());
    }

    private String connect() {
        for (int i = 0; i < groups.size(); i++) {
            groups.get(i).connect(addresses, i);
        }
        return "";
    }

    /** What kernels of a group are given: {@code Network.queues}. */
    public long table(int group) {
        return groups.get(group).table();
    }

    /**
     * What queue pairs have reported: the first failure, with those of others as suppressed. Names
     * the peer, and the entry and the syndrome of an error completion.
     */
    public Optional<NativeCallException> failure() {
        List<NativeCallException> failures =
                groups.stream().flatMap(group -> group.failures().stream()).toList();
        failures.stream().skip(1).forEach(later -> failures.getFirst().addSuppressed(later));
        return failures.stream().findFirst();
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
     * @throws io.deepep.error.DeepEpUnavailableException on every rank, if one cannot
     */
    public void mend() {
        String failed = "failed";
        boolean any =
                meeting.together(() -> quiet(timeout) ? "" : failed).stream()
                        .anyMatch(failed::equals);
        if (any) {
            reconnect();
        }
    }

    private void reconnect() {
        meeting.together(
                () -> {
                    nics.forEach(IbgdaNic::requireActive);
                    groups.forEach(IbgdaGroup::reset);
                    return "";
                });
        meeting.together(this::connect);
    }

    /** Gives everything back, once no kernel of this rank runs and what it sent has arrived. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            quiet(FAREWELL);
            undo.close();
        }
    }
}
