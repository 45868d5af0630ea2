package io.deepep.cuda.topology;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** What a user's mapping means on a host. */
record OverrideResolver(HostTopology topology, NicOverride override) {
    /**
     * The GPUs that the user has decided about, and their ports.
     *
     * @throws IllegalArgumentException if the host has no such GPU or port, or the port is down
     */
    Map<PciDevice, List<NicPort>> resolve() {
        Map<PciDevice, List<NicPort>> given = new LinkedHashMap<>();
        for (NicOverride.Rule rule : override.rules()) {
            if (!rule.isForAllOthers() && given.put(gpu(rule.gpu()), ports(rule)) != null) {
                throw wrong(rule.gpu() + " is given twice, by number and by address");
            }
        }
        for (NicOverride.Rule rule : override.rules()) {
            if (rule.isForAllOthers()) {
                List<NicPort> ports = ports(rule);
                topology.gpus().forEach(gpu -> given.putIfAbsent(gpu, ports));
            }
        }
        return given;
    }

    private PciDevice gpu(String name) {
        List<PciDevice> gpus = topology.gpus();
        int index =
                name.startsWith(NicOverride.GPU_PREFIX)
                        ? Integer.parseInt(name.substring(NicOverride.GPU_PREFIX.length()))
                        : topology.gpuIdx(PciAddress.parse(name));
        if (index < 0 || index >= gpus.size()) {
            throw wrong(
                    "%s is not a GPU of this host, which has %s"
                            .formatted(name, listed(gpus, PciDevice::address)));
        }
        return gpus.get(index);
    }

    private List<NicPort> ports(NicOverride.Rule rule) {
        List<NicPort> ports = new ArrayList<>();
        for (NicOverride.Port wanted : rule.ports()) {
            NicPort port = port(wanted);
            if (ports.contains(port)) {
                throw wrong("%s is given %s twice".formatted(rule.gpu(), port.name()));
            }
            ports.add(port);
        }
        return ports;
    }

    private NicPort port(NicOverride.Port wanted) {
        return topology.nics().stream()
                .filter(nic -> wanted.names(nic.hca(), nic.port()))
                .min(Comparator.comparingInt(NicPort::port))
                .orElseThrow(() -> missing(wanted));
    }

    private IllegalArgumentException missing(NicOverride.Port wanted) {
        return topology.excluded().stream()
                .filter(nic -> wanted.isOf(nic.name()))
                .findFirst()
                .map(nic -> wrong(wanted + " cannot be used: " + nic.reason()))
                .orElseGet(
                        () ->
                                wrong(
                                        "%s is not a NIC of this host, which has %s"
                                                .formatted(
                                                        wanted,
                                                        listed(topology.nics(), NicPort::name))));
    }

    private IllegalArgumentException wrong(String what) {
        return NicOverride.wrong(override.toString(), what);
    }

    /** The names of some things, for messages. */
    static <T> String listed(List<T> things, Function<T, Object> name) {
        return things.isEmpty()
                ? "none"
                : things.stream()
                        .map(thing -> name.apply(thing).toString())
                        .collect(Collectors.joining(", "));
    }
}
