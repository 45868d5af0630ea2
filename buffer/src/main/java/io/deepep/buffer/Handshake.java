package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.error.RankMismatchException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What ranks tell each other before they share memory: everything that must be equal, by name, so
 * that a difference is reported on every rank with both values. A rank that cannot open says why,
 * so that the others do not wait for it.
 */
final class Handshake {
    /** Changes whenever ranks of the former and the new version could not work together. */
    private static final String PROTOCOL_VERSION = "1";

    private static final String FAILURE = "failure";

    private Handshake() {}

    /**
     * Agrees with the other ranks: collective. Throws on every rank if two differ or one failed.
     */
    static void agree(BufferOptions options, BufferSizes sizes) {
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
        compare(exchange(options, mine));
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
     * Tells the others that this rank cannot open: collective, the counterpart of their {@link
     * #agree}.
     */
    static void refuse(BufferOptions options, RuntimeException why) {
        exchange(options, Map.of(FAILURE, String.valueOf(why.getMessage()).replace('\n', ' ')));
    }

    private static List<Map<String, String>> exchange(
            BufferOptions options, Map<String, String> mine) {
        Communicator communicator = options.communicator();
        return communicator.allGather(encode(mine), options.timeout()).stream()
                .map(Handshake::decode)
                .toList();
    }

    private static void compare(List<Map<String, String>> ranks) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            String failure = ranks.get(rank).get(FAILURE);
            if (failure != null) {
                throw new RankMismatchException(
                        "open: rank " + rank + " could not open its buffer: " + failure);
            }
        }
        Map<String, String> first = ranks.getFirst();
        for (int rank = 1; rank < ranks.size(); rank++) {
            for (Map.Entry<String, String> entry : first.entrySet()) {
                String other = ranks.get(rank).get(entry.getKey());
                if (!entry.getValue().equals(other)) {
                    throw RankMismatchException.of(
                            "open", entry.getKey(), 0, entry.getValue(), rank, other);
                }
            }
        }
    }

    private static byte[] encode(Map<String, String> values) {
        StringBuilder lines = new StringBuilder();
        values.forEach((key, value) -> lines.append(key).append('=').append(value).append('\n'));
        return lines.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, String> decode(byte[] message) {
        Map<String, String> values = new LinkedHashMap<>();
        new String(message, StandardCharsets.UTF_8)
                .lines()
                .forEach(
                        line -> {
                            int at = line.indexOf('=');
                            values.put(line.substring(0, at), line.substring(at + 1));
                        });
        return values;
    }
}
