package io.deepep.communicator;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.Event;
import org.jgroups.Message;
import org.jgroups.PhysicalAddress;
import org.jgroups.stack.IpAddress;
import org.jgroups.stack.Protocol;
import org.jgroups.util.ByteArray;
import org.jgroups.util.MessageBatch;
import org.jgroups.util.Util;

/**
 * Lies right above the transport and seals whole messages, headers included, so that nothing of a
 * process without the secret reaches the protocols above. (JGroups' own encryption does not
 * authenticate, and lets empty messages pass.)
 *
 * <p>A frame begins with its kind:
 *
 * <pre>
 *  SEALED    | sealed message                                          | between members
 *  KNOCK     | address length (1), address, port (2) | sealed message  | discovery, from a process that wants to join
 *  REFUSAL   |                                                         | answer to a knock that cannot be opened
 * </pre>
 *
 * A knock carries the knocker's own address in clear, so that one with another secret can be told.
 * As anybody can write any address there, the number of refusals is limited.
 */
final class SealProtocol extends Protocol {
    private static final short PROTOCOL_ID = 7001;
    private static final byte SEALED = 1;
    private static final byte KNOCK = 2;
    private static final byte REFUSAL = 3;
    private static final int MAX_REFUSALS = 1000;

    private final Seal seal;
    private final AtomicInteger numRefusals = new AtomicInteger();
    private volatile boolean refused;

    SealProtocol(Seal seal) {
        this.seal = seal;
        setId(PROTOCOL_ID);
    }

    /** Whether the process at the master address has answered that it has another secret. */
    boolean isRefused() {
        return refused;
    }

    @Override
    public Object down(Message message) {
        if (message.getSrc() == null) {
            message.setSrc(local_addr);
        }
        byte[] frame =
                message.getDest() instanceof PhysicalAddress
                        ? knock(message)
                        : sealed(SEALED, message);
        Message outer =
                new BytesMessage(message.getDest(), frame)
                        .setSrc(message.getSrc())
                        .setFlag(message.getFlags(false), false)
                        .setFlag(message.getFlags(true), true);
        return down_prot.down(outer);
    }

    private byte[] sealed(byte kind, Message message) {
        try {
            ByteArray plain = Util.messageToBuffer(message);
            return seal.seal(kind, plain.getArray(), plain.getOffset(), plain.getLength());
        } catch (Exception failure) {
            throw new IllegalStateException("cannot serialize " + message, failure);
        }
    }

    private byte[] knock(Message message) {
        byte[] sealed = sealed(KNOCK, message);
        IpAddress mine =
                (IpAddress) down_prot.down(new Event(Event.GET_PHYSICAL_ADDRESS, local_addr));
        byte[] ip = mine.getIpAddress().getAddress();
        byte[] frame = new byte[sealed.length + ip.length + 3];
        frame[0] = KNOCK;
        frame[1] = (byte) ip.length;
        System.arraycopy(ip, 0, frame, 2, ip.length);
        frame[2 + ip.length] = (byte) (mine.getPort() >>> 8);
        frame[3 + ip.length] = (byte) mine.getPort();
        System.arraycopy(sealed, 1, frame, 4 + ip.length, sealed.length - 1);
        return frame;
    }

    @Override
    public void up(MessageBatch batch) {
        for (Message message : batch) {
            up(message);
        }
    }

    @Override
    public Object up(Message outer) {
        byte[] frame = outer.hasArray() ? outer.getArray() : null;
        if (frame == null || (outer.getLength() < 2 && frame[outer.getOffset()] != REFUSAL)) {
            return null;
        }
        int offset = outer.getOffset();
        switch (frame[offset]) {
            case SEALED -> {
                return deliver(outer, seal.open(frame, offset + 1, outer.getLength() - 1));
            }
            case KNOCK -> {
                return answer(outer, frame, offset);
            }
            case REFUSAL -> refused = true;
            default -> log.debug("frame of unknown kind from %s dropped", outer.getSrc());
        }
        return null;
    }

    private Object answer(Message outer, byte[] frame, int offset) {
        int ipLength = outer.getLength() > 1 ? frame[offset + 1] : 0;
        int head = 4 + ipLength;
        if ((ipLength != 4 && ipLength != 16) || outer.getLength() < head) {
            return null;
        }
        byte[] plain = seal.open(frame, offset + head, outer.getLength() - head);
        if (plain != null) {
            return deliver(outer, plain);
        }
        if (numRefusals.incrementAndGet() <= MAX_REFUSALS) {
            byte[] ip = Arrays.copyOfRange(frame, offset + 2, offset + 2 + ipLength);
            int port =
                    ((frame[offset + 2 + ipLength] & 0xFF) << 8)
                            | (frame[offset + 3 + ipLength] & 0xFF);
            refuse(ip, port);
        }
        return null;
    }

    private void refuse(byte[] ip, int port) {
        try {
            Address knocker = new IpAddress(InetAddress.getByAddress(ip), port);
            down_prot.down(
                    new BytesMessage(knocker, new byte[] {REFUSAL})
                            .setSrc(local_addr)
                            .setFlag(Message.Flag.OOB, Message.Flag.DONT_BUNDLE));
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException("address of " + ip.length + " bytes", impossible);
        }
    }

    /**
     * Hands a message up that was opened, unless somebody put it into an envelope that is not its
     * own.
     */
    private Object deliver(Message outer, byte[] plain) {
        if (plain == null) {
            log.debug("frame from %s with another secret dropped", outer.getSrc());
            return null;
        }
        try {
            Message message = Util.messageFromBuffer(plain, 0, plain.length);
            boolean same =
                    Objects.equals(message.getSrc(), outer.getSrc())
                            && Objects.equals(message.getDest(), outer.getDest());
            return same ? up_prot.up(message) : null;
        } catch (RuntimeException above) {
            throw above;
        } catch (Exception failure) {
            throw new IllegalStateException(
                    "cannot read a message from " + outer.getSrc(), failure);
        }
    }
}
