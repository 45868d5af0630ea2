package io.deepep.communicator;

import java.io.DataInput;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.EmptyMessage;
import org.jgroups.LongMessage;
import org.jgroups.Message;
import org.jgroups.ObjectMessage;
import org.jgroups.PhysicalAddress;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.TCP;
import org.jgroups.util.Digest;
import org.jgroups.util.MutableDigest;
import org.jgroups.util.SeqnoList;
import org.jgroups.util.SizeStreamable;

/**
 * TCP that reads from other ranks only what JGroups' protocols in the {@link GroupChannel} say: one
 * message at a time, of a limited length and of a kind that needs no Java serialization. It sends
 * to each by itself, and leaves connections to those who have them.
 */
final class MeshTransport extends TCP {
    /** More than a view of 65535 ranks takes. */
    private static final int MAX_MESSAGE_BYTES = 8 << 20;

    /** Of the objects that the protocols send, all of which read themselves. */
    private static final Set<Short> KNOWN_OBJECTS =
            Set.of(
                    ClassConfigurator.getMagicNumber(SeqnoList.class),
                    ClassConfigurator.getMagicNumber(Digest.class),
                    ClassConfigurator.getMagicNumber(MutableDigest.class));

    private final Map<PhysicalAddress, Outbox> outboxes = new ConcurrentHashMap<>();

    MeshTransport() {
        setId(ClassConfigurator.getProtocolId(TCP.class));
        setBundlerType("no-bundler");
        useVirtualThreads(false); // Errands says why
    }

    /** Nobody waits for one who does not answer: neither heartbeats nor messages to others do. */
    @Override
    public void sendUnicast(PhysicalAddress destination, byte[] data, int offset, int length) {
        outboxes.computeIfAbsent(destination, to -> new Outbox(frame -> sendNow(to, frame)))
                .add(Arrays.copyOfRange(data, offset, offset + length));
    }

    private void sendNow(PhysicalAddress destination, byte[] frame) throws Exception {
        super.sendUnicast(destination, frame, 0, frame.length);
    }

    @Override
    public void receive(Address sender, DataInput in, int length) throws Exception {
        if (length < 0 || length > MAX_MESSAGE_BYTES) {
            throw new IOException("a message of " + length + " bytes from " + sender);
        }
        byte[] message = new byte[length];
        in.readFully(message);
        receive(sender, message, 0, length);
    }

    /** Nothing here sends any. */
    @Override
    protected void handleMessageBatch(DataInput in, boolean multicast) {
        log.debug("batch of messages dropped");
    }

    @Override
    protected void handleSingleMessage(DataInput in, boolean multicast) {
        try {
            Message message = create(in.readShort());
            message.readFrom(in);
            if (multicast || !unicastDestMismatch(message.getDest())) {
                msg_processing_policy.process(message, message.isFlagSet(Message.Flag.OOB));
            }
        } catch (Exception malformed) {
            log.debug("message dropped", malformed);
        }
    }

    private static Message create(short type) throws IOException {
        return switch (type) {
            case Message.BYTES_MSG -> new BytesMessage();
            case Message.EMPTY_MSG -> new EmptyMessage();
            case Message.LONG_MSG -> new LongMessage();
            case Message.OBJ_MSG -> new KnownObjectMessage();
            default -> throw new IOException("message of type " + type);
        };
    }

    private static final class KnownObjectMessage extends ObjectMessage {
        @Override
        public void readPayload(DataInput in) throws IOException, ClassNotFoundException {
            if (in.readByte() == 0) {
                return;
            }
            short kind = in.readShort();
            if (!KNOWN_OBJECTS.contains(kind)) {
                throw new IOException("object of kind " + kind);
            }
            SizeStreamable object = ClassConfigurator.create(kind);
            object.readFrom(in);
            setObject(object);
        }
    }

    /**
     * JGroups' own looks through the connections at every view: it closes those of processes that
     * are just joining, and drops one without closing it when the address of its peer becomes known
     * in that moment, after which the two refuse each other's connections for good.
     */
    @Override
    public void retainAll(Collection<Address> members) {}
}
