package io.deepep.bench.launch;

import io.deepep.bench.run.UsageException;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.PciDevice;
import io.deepep.spi.posix.SysFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Which processors each rank of a host runs on: those of the NUMA node that its GPU is attached to,
 * as far as this process may use them. Without GPUs the ranks are dealt to the nodes in turn.
 * Memory follows, as Linux takes it from the node of the processor that touches it first. A rank
 * whose GPU's node is not known, or lies outside, runs on all.
 *
 * @param processors of each local rank, as {@code taskset -c} reads them; empty for all
 */
record NumaBinding(List<String> processors) {
    private static final Path TASKSET = Path.of("usr/bin/taskset");
    private static final String MINOR = "Device Minor:";
    private static final String ALLOWED = "Cpus_allowed_list:";

    /** Every rank on every processor. */
    static NumaBinding none(int numRanks) {
        return new NumaBinding(IntStream.range(0, numRanks).mapToObj(rank -> "").toList());
    }

    /**
     * By what {@code root}'s sysfs shows.
     *
     * @param environment the launcher's, for {@code CUDA_VISIBLE_DEVICES}
     * @throws UsageException without taskset, or without NUMA nodes in sysfs
     */
    static NumaBinding of(Path root, Map<String, String> environment, int numRanks) {
        if (!Files.isExecutable(root.resolve(TASKSET))) {
            throw new UsageException(
                    "--numa-binding needs /"
                            + TASKSET
                            + "; install util-linux, or leave the option out");
        }
        Path nodes = root.resolve("sys/devices/system/node");
        Optional<BitSet> allowed = allowed(root);
        List<String> ofGpus =
                HostTopology.read(root.resolve("sys")).gpus().stream()
                        .filter(gpu -> mayUse(root, gpu))
                        .map(gpu -> processors(nodes, gpu.numaNode(), allowed))
                        .toList();
        List<String> inTurn = ofNodesWithProcessors(nodes, allowed);
        List<Integer> visible = visible(environment.get("CUDA_VISIBLE_DEVICES"), ofGpus.size());
        List<String> used = visible.isEmpty() ? inTurn : visible.stream().map(ofGpus::get).toList();
        return new NumaBinding(
                IntStream.range(0, numRanks)
                        .mapToObj(rank -> used.get(rank % used.size()))
                        .toList());
    }

    /**
     * Sysfs shows all GPUs of the host. A container or a job that has some of them can open the
     * device files of these alone, or the driver tells it of no others.
     */
    private static boolean mayUse(Path root, PciDevice gpu) {
        Path driver = root.resolve("proc/driver/nvidia/gpus");
        if (!Files.isDirectory(driver)) {
            return true;
        }
        Path facts = driver.resolve(gpu.address().toString()).resolve("information");
        return SysFiles.text(facts).stream()
                .flatMap(String::lines)
                .filter(line -> line.startsWith(MINOR))
                .map(line -> "dev/nvidia" + line.substring(MINOR.length()).strip())
                .anyMatch(file -> Files.isReadable(root.resolve(file)));
    }

    /**
     * Indices of the GPUs that ranks see: as in CUDA, those before the first that there is not. If
     * they are named in another way, all.
     */
    private static List<Integer> visible(String variable, int numGpus) {
        if (variable == null || !variable.matches("\\d{1,9}(,\\d{1,9})*")) {
            return IntStream.range(0, numGpus).boxed().toList();
        }
        return Arrays.stream(variable.split(",", -1))
                .map(Integer::valueOf)
                .takeWhile(gpu -> gpu < numGpus)
                .toList();
    }

    /** Others are memory alone, such as that of a GPU. */
    private static List<String> ofNodesWithProcessors(Path nodes, Optional<BitSet> allowed) {
        List<String> found =
                IntStream.iterate(
                                0,
                                node -> Files.exists(nodes.resolve("node" + node)),
                                node -> node + 1)
                        .mapToObj(node -> processors(nodes, OptionalInt.of(node), allowed))
                        .filter(processors -> !processors.isEmpty())
                        .toList();
        if (found.isEmpty()) {
            throw new UsageException(
                    "--numa-binding: " + nodes + " shows no NUMA nodes; leave the option out");
        }
        return found;
    }

    private static String processors(Path nodes, OptionalInt node, Optional<BitSet> allowed) {
        if (node.isEmpty()) {
            return "";
        }
        Path file = nodes.resolve("node" + node.getAsInt()).resolve("cpulist");
        try {
            String list = Files.readString(file).strip();
            BitSet processors = numbers(list);
            int all = processors.cardinality();
            allowed.ifPresent(processors::and);
            return processors.cardinality() == all
                    ? list
                    : processors.stream()
                            .mapToObj(String::valueOf)
                            .collect(Collectors.joining(","));
        } catch (IOException unreadable) {
            throw new UsageException("--numa-binding: cannot read " + file + ": " + unreadable);
        }
    }

    /** A container or a job may have some of the host's processors; taskset refuses the others. */
    private static Optional<BitSet> allowed(Path root) {
        return SysFiles.text(root.resolve("proc/self/status")).stream()
                .flatMap(String::lines)
                .filter(line -> line.startsWith(ALLOWED))
                .map(line -> numbers(line.substring(ALLOWED.length()).strip()))
                .findFirst();
    }

    /** Of a list such as {@code 0-47,96-143}. */
    private static BitSet numbers(String list) {
        BitSet numbers = new BitSet();
        for (String range : list.isEmpty() ? new String[0] : list.split(",", -1)) {
            String[] ends = range.split("-", 2);
            numbers.set(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]) + 1);
        }
        return numbers;
    }

    /** What comes before the command of a rank. */
    List<String> prefix(int localRank) {
        String list = processors.get(localRank);
        return list.isEmpty() ? List.of() : List.of("/" + TASKSET, "-c", list);
    }
}
