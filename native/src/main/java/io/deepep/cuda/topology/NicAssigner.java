package io.deepep.cuda.topology;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Gives every GPU a port, and more where there are more.
 *
 * <p>First round: level by level, nearest first, each GPU takes the least used of the ports that
 * are nearest to it. No port serves more than its share, {@code ceil(GPUs / ports)}: a GPU that
 * finds all its nearest ports full takes the next nearest. PCI is a tree, so GPUs that compete for
 * a port have the same other ports within reach, and this greedy choice is the best one.
 *
 * <p>Further rounds, while there are unused ports for all: each GPU takes one more, at the distance
 * of its first. Only whole rounds count, because NVSHMEM wants the same number on every process.
 */
final class NicAssigner {
    private final List<NicPort> ports;
    private final Map<PciDevice, List<NicPort>> taken = new HashMap<>();
    private final Map<NicPort, Integer> load = new HashMap<>();

    NicAssigner(List<NicPort> ports) {
        this.ports = ports;
    }

    /** Counts what the user has decided. */
    void preset(PciDevice gpu, List<NicPort> nics) {
        taken.put(gpu, new ArrayList<>(nics));
        nics.forEach(nic -> load.merge(nic, 1, Integer::sum));
    }

    /** The ports of a GPU; empty before it was assigned any. */
    List<NicPort> of(PciDevice gpu) {
        return taken.getOrDefault(gpu, List.of());
    }

    /** Number of GPUs that use a port. */
    int load(NicPort port) {
        return load.getOrDefault(port, 0);
    }

    /** Whether a GPU uses the port, also one that the user has named against the selection. */
    boolean isUsed(String portName) {
        return taken.values().stream()
                .flatMap(List::stream)
                .anyMatch(port -> port.name().equals(portName));
    }

    /** The first round for all GPUs that have no port yet; {@code gpus} in a fixed order. */
    void assign(List<PciDevice> gpus) {
        if (ports.isEmpty()) {
            return;
        }
        int share = Math.ceilDiv(gpus.size(), ports.size());
        List<PciDevice> waiting = new ArrayList<>(gpus);
        waiting.removeAll(taken.keySet());
        // Once is enough, unless the user has given some ports more than their share.
        for (; !waiting.isEmpty(); share++) {
            int most = share;
            for (PciDistance level : PciDistance.values()) {
                waiting.removeIf(gpu -> takeAt(gpu, level, most));
            }
        }
    }

    private boolean takeAt(PciDevice gpu, PciDistance level, int most) {
        // Ports are in a fixed order and min takes the first of equals.
        Optional<NicPort> least =
                ports.stream()
                        .filter(port -> distance(gpu, port) == level && load(port) < most)
                        .min(Comparator.comparingInt(this::load));
        least.ifPresent(port -> take(gpu, port));
        return least.isPresent();
    }

    private void take(PciDevice gpu, NicPort port) {
        taken.computeIfAbsent(gpu, _ -> new ArrayList<>()).add(port);
        load.merge(port, 1, Integer::sum);
    }

    /** Further rounds. */
    void assignMore(List<PciDevice> gpus) {
        if (gpus.isEmpty() || ports.isEmpty()) {
            return;
        }
        List<PciDevice> nearestFirst = new ArrayList<>(gpus);
        nearestFirst.sort(Comparator.comparing(gpu -> distance(gpu, of(gpu).getFirst())));
        List<PciDevice> served = new ArrayList<>();
        do {
            served.clear();
            for (PciDevice gpu : nearestFirst) {
                if (takeAt(gpu, distance(gpu, of(gpu).getFirst()), 1)) {
                    served.add(gpu);
                }
            }
        } while (served.size() == gpus.size());
        served.forEach(this::giveBackLast);
    }

    private void giveBackLast(PciDevice gpu) {
        load.merge(of(gpu).removeLast(), -1, Integer::sum);
    }

    static PciDistance distance(PciDevice gpu, NicPort port) {
        return gpu.distanceTo(port.device());
    }
}
