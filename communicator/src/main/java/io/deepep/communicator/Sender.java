package io.deepep.communicator;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;

/** Sends what a rank has to say to the others. */
final class Sender {
    private static final int HEADER_BYTES = 1 + Long.BYTES + Integer.BYTES;
    private static final int MAX_PART_BYTES = 60_000;

    private static final CompletableFuture<Void> NOTHING = CompletableFuture.completedFuture(null);

    private final int rank;
    private final JChannel channel;

    /** The end of the latest of what is sent to each in turn. */
    private final Map<Address, CompletableFuture<Void>> lastSent = new ConcurrentHashMap<>();

    Sender(int rank, JChannel channel) {
        this.rank = rank;
        this.channel = channel;
    }

    /**
     * Whoever waits for the others does not wait for flow control, which knows no time-out: short
     * messages go past it, and other threads send long ones. A message may overtake a long one of
     * an earlier exchange.
     */
    void sendMessage(byte kind, long round, byte[] message) {
        if (message.length > MAX_PART_BYTES) {
            // A copy, as the caller may change its own before all have it.
            sendToOthersInTurn(kind, round, message.clone());
            return;
        }
        // To each by itself: JGroups sends what got lost again at once, where of a multicast
        // message it first has to find out that there was one.
        for (Address member : channel.getView()) {
            if (RankAddress.rank(member) != rank) {
                sendShort(member, kind, round, message);
            }
        }
    }

    /** On other threads: to each after what is still on its way there by this method. */
    void sendToOthersInTurn(byte kind, long round, byte[] payload, Message.Flag... flags) {
        for (Address member : channel.getView()) {
            if (RankAddress.rank(member) != rank) {
                lastSent.compute(
                        member,
                        (_, before) ->
                                (before == null ? NOTHING : before)
                                        .handleAsync(
                                                (_, _) -> {
                                                    send(member, kind, round, payload, flags);
                                                    return null;
                                                },
                                                Errands::run));
            }
        }
    }

    /** Past flow control, which may hold back what is longer. */
    void sendShort(Address destination, byte kind, long round, byte... payload) {
        send(destination, kind, round, payload, Message.Flag.NO_FC);
    }

    /** In parts that flow control can hold back. */
    private void send(
            Address destination, byte kind, long round, byte[] payload, Message.Flag... flags) {
        int sent = 0;
        do {
            int part = Math.min(payload.length - sent, MAX_PART_BYTES);
            ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + part);
            frame.put(kind).putLong(round).putInt(payload.length).put(payload, sent, part);
            try {
                channel.send(new BytesMessage(destination, frame.array()).setFlag(flags));
            } catch (Exception failure) {
                throw new IllegalStateException(
                        "the communicator of rank " + rank + " cannot send", failure);
            }
            sent += part;
        } while (sent < payload.length);
    }
}
