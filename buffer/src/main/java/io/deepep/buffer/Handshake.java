package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * What ranks tell each other before they share memory: everything that must be equal, by name, so
 * that a difference is reported on every rank with both values. A rank that cannot open says why,
 * so that the others do not wait for it.
 */
final class Handshake {
    /** Changes whenever ranks of the former and the new version could not work together. */
    private static final String PROTOCOL_VERSION = "1";

    private static final String FAILURE = "failure";
    static final String OPEN = "open";
    static final String JOIN = "join";

    /** Given by ranks that have a buffer: which. */
    private static final String BUFFER = "the buffer";

    /** Given by the others: a part of what is to tell theirs from any other. */
    private static final String NEW = "new";

    private Handshake() {}

    /**
     * Agrees with the other ranks to open a buffer, or to join ranks that {@link #admit}:
     * collective. Throws on every rank if two differ or one failed.
     *
     * @param operation {@link #OPEN} or {@link #JOIN}
     */
    static Agreement agree(String operation, BufferOptions options, BufferSizes sizes) {
        Map<String, String> mine = describe(options, sizes);
        mine.put(NEW, Long.toHexString(ThreadLocalRandom.current().nextLong()));
        return agree(operation, options, options.communicator(), mine);
    }

    /** The same as one that has the buffer, with those that join. */
    static Agreement admit(
            Communicator group, BufferOptions options, BufferSizes sizes, String buffer) {
        Map<String, String> mine = describe(options, sizes);
        mine.put(BUFFER, buffer);
        return agree("admit", options, group, mine);
    }

    private static Agreement agree(
            String operation, BufferOptions options, Communicator group, Map<String, String> mine) {
        List<Map<String, String>> ranks = exchange(operation, group, options, mine);
        compare(operation, ranks);
        BitSet newRanks = new BitSet();
        List<String> parts = new ArrayList<>();
        String buffer = null;
        for (int rank = 0; rank < ranks.size(); rank++) {
            Map<String, String> theirs = ranks.get(rank);
            newRanks.set(rank, theirs.containsKey(NEW));
            parts.add(theirs.get(NEW));
            String itsBuffer = theirs.get(BUFFER);
            if (buffer != null && itsBuffer != null && !buffer.equals(itsBuffer)) {
                int first = newRanks.nextClearBit(0);
                throw RankMismatchException.of(operation, BUFFER, first, buffer, rank, itsBuffer);
            }
            buffer = buffer == null ? itsBuffer : buffer;
        }
        if (buffer == null) {
            if (!operation.equals(OPEN)) {
                throw new RankMismatchException(
                        "join: no rank has the buffer; if all ranks are new, use open()");
            }
            buffer = Integer.toHexString(parts.hashCode());
        }
        return new Agreement(
                buffer,
                new HeapRanks(group, options.topology(), newRanks, options.meetingTimeout()));
    }

    private static Map<String, String> describe(BufferOptions options, BufferSizes sizes) {
        Map<String, String> mine = new LinkedHashMap<>();
        mine.put("protocol version", PROTOCOL_VERSION);
        mine.put("kind of device", options.device().kind().name());
        mine.put("network", name(options.network()));
        mine.put("ranksPerNode", Integer.toString(options.topology().numNvlRanks()));
        mine.put("normal limits", String.valueOf(options.normal()));
        mine.put("low-latency limits", String.valueOf(options.lowLatency()));
        mine.put("dispatchConfig", options.dispatchConfig().toString());
        mine.put("combineConfig", options.combineConfig().toString());
        mine.put("maskTimedOutRanks", Boolean.toString(options.maskTimedOutRanks()));
        mine.put("numNvlBytes", Long.toString(options.numNvlBytes()));
        mine.put("numRdmaBytes", Long.toString(options.numRdmaBytes()));
        mine.put("layout hash", Long.toHexString(sizes.layoutHash()));
        return mine;
    }

    /** NICs and interfaces may differ; what else NVSHMEM is started with, it compares itself. */
    private static String name(Network network) {
        return switch (network) {
            case Network.Nvshmem nvshmem -> "NVSHMEM over " + nvshmem.transport();
            case Network.Ibgda ibgda -> ibgda.withNicMapping("").toString();
            default -> network.toString();
        };
    }

    /**
     * Tells the others that this rank cannot open, join or admit: collective, the counterpart of
     * theirs. Whoever calls throws {@code why}; that a peer is gone as well is noted there.
     */
    static void refuse(Communicator group, BufferOptions options, RuntimeException why) {
        String text = String.valueOf(why.getMessage()).replaceAll("\\R", " ");
        try {
            group.allGather(encode(Map.of(FAILURE, text)), options.meetingTimeout());
        } catch (RuntimeException lost) {
            why.addSuppressed(lost);
        }
    }

    private static List<Map<String, String>> exchange(
            String operation, Communicator group, BufferOptions options, Map<String, String> mine) {
        return Meeting.gather(
                group,
                encode(mine),
                options.meetingTimeout(),
                (rank, message) -> decode(operation, rank, message));
    }

    private static void compare(String operation, List<Map<String, String>> ranks) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            String failure = ranks.get(rank).get(FAILURE);
            if (failure != null) {
                throw new RankMismatchException(
                        "%s: rank %s %s: %s"
                                .formatted(
                                        operation,
                                        rank,
                                        operation.equals(OPEN)
                                                ? "could not open its buffer"
                                                : "cannot take part",
                                        failure));
            }
        }
        Map<String, String> first = ranks.getFirst();
        for (int rank = 1; rank < ranks.size(); rank++) {
            for (Map.Entry<String, String> entry : first.entrySet()) {
                if (entry.getKey().equals(BUFFER) || entry.getKey().equals(NEW)) {
                    continue;
                }
                String other = ranks.get(rank).get(entry.getKey());
                if (!entry.getValue().equals(other)) {
                    throw RankMismatchException.of(
                            operation, entry.getKey(), 0, entry.getValue(), rank, other);
                }
            }
        }
    }

    private static byte[] encode(Map<String, String> values) {
        StringBuilder lines = new StringBuilder();
        values.forEach((key, value) -> lines.append(key).append('=').append(value).append('\n'));
        return lines.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, String> decode(String operation, int rank, byte[] message) {
        List<String> lines = new String(message, StandardCharsets.UTF_8).lines().toList();
        if (lines.isEmpty() || !lines.stream().allMatch(line -> line.contains("="))) {
            throw RankMismatchException.ofCall(operation, rank);
        }
        Map<String, String> values = new LinkedHashMap<>();
        for (String line : lines) {
            int at = line.indexOf('=');
            values.put(line.substring(0, at), line.substring(at + 1));
        }
        return values;
    }
}
