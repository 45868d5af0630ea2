package io.deepep.cuda.topology;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * Which of a host's ports the GPUs share among them. Left out are ports that NVSHMEM's InfiniBand
 * transports do not drive, those of the lesser network where a host has InfiniBand and RoCE, and
 * those meant for storage or management: slower than half of the fastest.
 */
final class NicSelection {
    private static final String DRIVER = "mlx5_core";
    private static final double LEAST_SHARE_OF_FASTEST = 0.5;

    private List<NicPort> ports;
    private final List<ExcludedNic> excluded;

    NicSelection(HostTopology topology) {
        ports = topology.nics();
        excluded = new ArrayList<>(topology.excluded());
        keepKnownDrivers();
        keepOneLinkLayer();
        keepFast();
    }

    List<NicPort> ports() {
        return ports;
    }

    List<ExcludedNic> excluded() {
        return excluded;
    }

    private void keepKnownDrivers() {
        // Where sysfs does not name the driver, the port is kept.
        for (NicPort port : keep(p -> p.driver().isEmpty() || p.driver().equals(DRIVER))) {
            exclude(port, "driver " + port.driver() + " is not " + DRIVER);
        }
    }

    private void keepOneLinkLayer() {
        Map<LinkLayer, Double> gbps =
                ports.stream()
                        .collect(
                                Collectors.groupingBy(
                                        NicPort::linkLayer,
                                        Collectors.summingDouble(NicPort::gbps)));
        if (gbps.size() < 2) {
            return;
        }
        LinkLayer most =
                gbps.get(LinkLayer.ROCE) > gbps.get(LinkLayer.INFINIBAND)
                        ? LinkLayer.ROCE
                        : LinkLayer.INFINIBAND;
        for (NicPort port : keep(p -> p.linkLayer() == most)) {
            exclude(
                    port,
                    String.format(
                            Locale.ROOT,
                            "%s, while most of this host's speed is %s (%.0f of %.0f Gb/s), and they cannot reach each other",
                            port.linkLayer(),
                            most,
                            gbps.get(most),
                            gbps.values().stream().mapToDouble(Double::doubleValue).sum()));
        }
    }

    private void keepFast() {
        double fastest = ports.stream().mapToDouble(NicPort::gbps).max().orElse(0);
        for (NicPort port : keep(p -> p.gbps() >= fastest * LEAST_SHARE_OF_FASTEST)) {
            exclude(
                    port,
                    String.format(
                            Locale.ROOT,
                            "%.0f Gb/s is less than half of the fastest port's %.0f Gb/s",
                            port.gbps(),
                            fastest));
        }
    }

    /** Keeps some ports and returns the others. */
    private List<NicPort> keep(Predicate<NicPort> wanted) {
        Map<Boolean, List<NicPort>> parts =
                ports.stream().collect(Collectors.partitioningBy(wanted));
        ports = parts.get(true);
        return parts.get(false);
    }

    private void exclude(NicPort port, String reason) {
        excluded.add(new ExcludedNic(port.name(), reason));
        excluded.sort(Comparator.comparing(ExcludedNic::name));
    }
}
