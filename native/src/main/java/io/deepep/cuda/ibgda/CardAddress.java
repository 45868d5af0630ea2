package io.deepep.cuda.ibgda;

import io.deepep.cuda.rdma.Endpoint;
import io.deepep.cuda.rdma.Gid;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;

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

    /** Of a rank with one port and one group, whose queue pairs are numbered in a row. */
    static CardAddress example(IbgdaOptions.Group group) {
        Endpoint endpoint = new Endpoint(false, 0, 0, new Gid(0, 0, 0), false);
        int queues = group.queuesPerPeer();
        List<Integer> numbers =
                IntStream.range(0, group.peers().size() * queues)
                        .map(at -> group.peers().get(at / queues) < 0 ? 0 : at + 1)
                        .boxed()
                        .toList();
        return new CardAddress(0, List.of(new Port(endpoint, 0)), List.of(numbers));
    }

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
                writeRuns(group, out);
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
                groups.add(readRuns(in));
            }
            return new CardAddress(address, ports, groups);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /**
     * All ranks are told, of thousands of numbers, so it matters that these mostly follow each
     * other: runs of equal distances, each as its first number, distance and length, up to one of
     * length 0.
     */
    private static void writeRuns(List<Integer> numbers, DataOutputStream out) throws IOException {
        for (int from = 0; from < numbers.size(); ) {
            int first = numbers.get(from);
            int step = from + 1 < numbers.size() ? numbers.get(from + 1) - first : 0;
            int end = from + 1;
            while (end < numbers.size() && numbers.get(end) == first + step * (end - from)) {
                end++;
            }
            writeRun(out, first, step, end - from);
            from = end;
        }
        writeRun(out, 0, 0, 0);
    }

    private static void writeRun(DataOutputStream out, int first, int step, int length)
            throws IOException {
        out.writeInt(first);
        out.writeInt(step);
        out.writeInt(length);
    }

    private static List<Integer> readRuns(DataInputStream in) throws IOException {
        List<Integer> numbers = new ArrayList<>();
        while (true) {
            int first = in.readInt();
            int step = in.readInt();
            int length = in.readInt();
            if (length == 0) {
                return numbers;
            }
            for (int k = 0; k < length; k++) {
                numbers.add(first + step * k);
            }
        }
    }
}
