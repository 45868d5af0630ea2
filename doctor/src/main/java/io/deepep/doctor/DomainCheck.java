package io.deepep.doctor;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** NVLink domains of several hosts, and whether processes may share memory across these. */
final class DomainCheck {
    private static final Check DOMAIN = new Check("GPU", "NVLink domain");
    private static final Check CHANNEL = new Check("GPU", "IMEX channel");
    private static final String CHANNELS = "dev/nvidia-caps-imex-channels";

    private DomainCheck() {}

    static List<Finding> check(Machine machine, GpuFacts gpus) {
        Map<String, List<GpuFacts.Gpu>> byDomain =
                gpus.gpus().stream()
                        .collect(
                                Collectors.groupingBy(
                                        GpuFacts.Gpu::nvlinkDomain,
                                        TreeMap::new,
                                        Collectors.toList()));
        Finding domains = DOMAIN.ok(text(byDomain));
        return byDomain.keySet().equals(Set.of(""))
                ? List.of(domains)
                : List.of(domains, channels(machine));
    }

    private static String text(Map<String, List<GpuFacts.Gpu>> byDomain) {
        return byDomain.entrySet().stream()
                .map(
                        domain ->
                                domain.getKey().isEmpty()
                                        ? "this host is one: " + names(domain.getValue())
                                        : names(domain.getValue()) + " in " + domain.getKey())
                .collect(Collectors.joining("; "));
    }

    private static String names(List<GpuFacts.Gpu> gpus) {
        return gpus.stream().map(gpu -> "cuda:" + gpu.ordinal()).collect(Collectors.joining(" "));
    }

    private static Finding channels(Machine machine) {
        List<String> channels = machine.names(CHANNELS);
        return channels.isEmpty()
                ? CHANNEL.warn(
                        "none in /" + CHANNELS + ": memory cannot be shared across hosts",
                        "set up nvidia-imex on every host of the domain, and a channel that the process may open:"
                                + " sudo nvidia-modprobe -i 0:1")
                : CHANNEL.ok(String.join(", ", channels));
    }
}
