package io.deepep.buffer.parity;

import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * One exchange as the vector files of {@code python-parity} describe it, see the README there: its
 * settings, its inputs by rank, and what is claimed to come of them.
 *
 * @param settings the file's metadata
 * @param inputs for each rank tensors by name
 * @param outputs for each rank tensors by name; empty if nothing is claimed
 * @param bounds for outputs that are not defined bit for bit, how far off they may be
 */
record ParityCase(
        Map<String, String> settings,
        List<Map<String, Tensor>> inputs,
        List<Map<String, Tensor>> outputs,
        List<Map<String, Tensor>> bounds) {
    private static final String LOW_LATENCY = "low_latency";

    static ParityCase from(SafetensorsFile file) {
        int numRanks = Integer.parseInt(file.metadata().get("num_ranks"));
        Map<String, List<Map<String, Tensor>>> kinds =
                Map.of(
                        "input",
                        empty(numRanks),
                        "output",
                        empty(numRanks),
                        "bound",
                        empty(numRanks));
        file.tensors()
                .forEach(
                        (path, tensor) -> {
                            String[] parts = path.split("/", 3);
                            int rank = Integer.parseInt(parts[0].substring("rank".length()));
                            kinds.get(parts[1]).get(rank).put(parts[2], tensor);
                        });
        return new ParityCase(
                file.metadata(), kinds.get("input"), kinds.get("output"), kinds.get("bound"));
    }

    private static List<Map<String, Tensor>> empty(int numRanks) {
        List<Map<String, Tensor>> maps = new ArrayList<>();
        for (int rank = 0; rank < numRanks; rank++) {
            maps.add(new TreeMap<>());
        }
        return maps;
    }

    /** A file of this case with the outputs that a run of it had. */
    SafetensorsFile toFile(List<Map<String, Tensor>> seen) {
        Map<String, Tensor> tensors = new TreeMap<>();
        for (int rank = 0; rank < inputs.size(); rank++) {
            String prefix = "rank" + rank;
            inputs.get(rank).forEach((name, t) -> tensors.put(prefix + "/input/" + name, t));
            seen.get(rank).forEach((name, t) -> tensors.put(prefix + "/output/" + name, t));
        }
        return new SafetensorsFile(tensors, settings);
    }

    EpTopology topology() {
        return new EpTopology(0, number("num_ranks"), number("ranks_per_node"));
    }

    boolean isLowLatency() {
        return settings.get("operation").equals(LOW_LATENCY);
    }

    int number(String name) {
        return Integer.parseInt(settings.get(name));
    }

    boolean flag(String name) {
        return Boolean.parseBoolean(settings.get(name));
    }

    LowLatencyFormat format() {
        return LowLatencyFormat.valueOf(settings.get("format").toUpperCase(Locale.ROOT));
    }

    /** Ranks that all others have masked and that take no part. */
    Set<Integer> absent() {
        Set<Integer> ranks = new HashSet<>();
        Arrays.stream(settings.get("absent").split(","))
                .filter(rank -> !rank.isEmpty())
                .forEach(rank -> ranks.add(Integer.valueOf(rank)));
        return ranks;
    }
}
