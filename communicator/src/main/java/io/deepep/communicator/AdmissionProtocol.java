package io.deepep.communicator;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.stream.StreamSupport;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.Event;
import org.jgroups.Header;
import org.jgroups.Message;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.PingData;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.JoinRsp;
import org.jgroups.stack.Protocol;
import org.jgroups.util.MessageBatch;
import org.jgroups.util.Responses;

/**
 * Lies below the membership protocol. At rank 0 it decides who may join; at the other ranks it
 * holds joining back until rank 0 is there, for JGroups would let a process that finds nobody start
 * a group of its own.
 */
final class AdmissionProtocol extends Protocol {
    private static final short PROTOCOL_ID = 7002;
    private static final short GMS_ID = ClassConfigurator.getProtocolId(GMS.class);
    private static final long ATTEMPT_MILLIS = 250;

    private final int rank;
    private final int size;
    private final InetSocketAddress master;
    private final Door door;
    private final Exchange exchange;
    private final long start;
    private final long timeoutNanos;

    /** Everybody who was ever let in, by rank: a group does not take a rank back. */
    private final Address[] admitted;

    AdmissionProtocol(
            int rank,
            int size,
            InetSocketAddress master,
            Door door,
            Exchange exchange,
            long start,
            long timeoutNanos) {
        this.rank = rank;
        this.size = size;
        this.master = master;
        this.door = door;
        this.exchange = exchange;
        this.start = start;
        this.timeoutNanos = timeoutNanos;
        admitted = new Address[size];
        setId(PROTOCOL_ID);
    }

    @Override
    public Object down(Event event) {
        if (event.getType() != Event.FIND_INITIAL_MBRS) {
            return down_prot.down(event);
        }
        return rank == 0 ? new Responses(true).done() : awaitRankZero(event);
    }

    private Responses awaitRankZero(Event event) {
        while (true) {
            Responses responses = (Responses) down_prot.down(event);
            responses.waitFor(ATTEMPT_MILLIS);
            if (StreamSupport.stream(responses.spliterator(), false).anyMatch(PingData::isCoord)) {
                return responses;
            }
            responses.done();
            if (Thread.interrupted()) {
                throw Exchange.interrupted(rank, new InterruptedException());
            }
            if (door.refusal() != null) {
                throw new RankMismatchException(
                        "rank %s and the process at the master address %s"
                                .formatted(rank, door.refusal()));
            }
            exchange.requireNobodyGone(start);
            if (System.nanoTime() - start > timeoutNanos) {
                throw new DeepEpTimeoutException(rank, 0, startPhase(), size, 1, timeoutNanos);
            }
        }
    }

    /** Where nobody was found, and why, as far as that is known. */
    private String startPhase() {
        return ProcessCommunicator.START + " at " + Door.place(master) + door.failure(master);
    }

    @Override
    public void up(MessageBatch batch) {
        for (Message message : batch) {
            up(message);
        }
    }

    @Override
    public Object up(Message message) {
        Header header = message.getHeader(GMS_ID);
        if (!(header instanceof GMS.GmsHeader gms)) {
            return up_prot.up(message);
        }
        boolean wantsToJoin =
                switch (gms.getType()) {
                    case GMS.GmsHeader.JOIN_REQ, GMS.GmsHeader.JOIN_REQ_WITH_STATE_TRANSFER -> true;
                    default -> false;
                };
        String reason = wantsToJoin ? admit(gms.getMember()) : null;
        if (reason == null) {
            return up_prot.up(message);
        }
        down_prot.down(
                new BytesMessage(message.getSrc())
                        .putHeader(GMS_ID, new GMS.GmsHeader(GMS.GmsHeader.JOIN_RSP))
                        .setArray(GMS.marshal(new JoinRsp(reason))));
        return null;
    }

    /** Why {@code joiner} may not join, or null. */
    private synchronized String admit(Address joiner) {
        int itsRank = RankAddress.rank(joiner);
        int itsSize = RankAddress.size(joiner);
        if (itsSize != size) {
            return "rank %s was started with size=%s, rank %s with size=%s; give all ranks the same WORLD_SIZE"
                    .formatted(itsRank, itsSize, rank, size);
        }
        Address holder = itsRank == rank ? local_addr : admitted[itsRank];
        if (holder != null && !Objects.equals(holder, joiner)) {
            return ("rank=%s has joined this group before; give every process a RANK of its own, and start all ranks"
                            + " again after one has failed")
                    .formatted(itsRank);
        }
        admitted[itsRank] = joiner;
        return null;
    }
}
