package io.deepep.cuda.ibgda;

import io.deepep.cuda.rdma.Endpoint;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * What a rank tells the others, once for all its queue pairs.
 *
 * @param address of its network memory, as cards name it
 * @param ports that its queue pairs use in turn
 * @param groups the numbers of its queue pairs, by group: those to the first peer, then those to
 *     the next
 */
record CardAddress(long address, List<Port> ports, List<List<Integer>> groups) {
    /**
     * A port.
     *
     * @param remoteKey of the network memory, for peers that come through this port
     */
    record Port(Endpoint endpoint, int remoteKey) {}

    String encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeLong(address);
            out.writeInt(ports.size());
            for (Port port : ports) {
                port.endpoint.write(out);
                out.writeInt(port.remoteKey);
            }
            out.writeInt(groups.size());
            for (List<Integer> group : groups) {
                out.writeInt(group.size());
                for (int number : group) {
                    out.writeInt(number);
                }
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    static CardAddress decode(String text) {
        byte[] bytes = Base64.getDecoder().decode(text);
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            long address = in.readLong();
            List<Port> ports = new ArrayList<>();
            for (int i = in.readInt(); i > 0; i--) {
                ports.add(new Port(Endpoint.read(in), in.readInt()));
            }
            List<List<Integer>> groups = new ArrayList<>();
            for (int i = in.readInt(); i > 0; i--) {
                List<Integer> numbers = new ArrayList<>();
                for (int k = in.readInt(); k > 0; k--) {
                    numbers.add(in.readInt());
                }
                groups.add(numbers);
            }
            return new CardAddress(address, ports, groups);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }
}
