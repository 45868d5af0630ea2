package io.deepep.doctor;

import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Whether GPUs can drive the NICs by {@code Network.ibgda()}. */
final class IbgdaCheck {
    static final Check CARDS = new Check("IBGDA", "cards");
    static final Check PORTS = new Check("IBGDA", "ports");
    static final Check MEMORY = new Check("IBGDA", "GPU memory");
    private static final Check ORDERING = new Check("IBGDA", "relaxed ordering");
    private static final Check GPU = new Check("IBGDA", "GPU");
    private static final Check QUEUES = new Check("IBGDA", "queues");
    private static final Check DOORBELLS = new Check("IBGDA", "doorbells");

    private IbgdaCheck() {}

    static List<Finding> check(List<NicPort> nics, List<NicFacts> cards) {
        List<NicFacts> used =
                cards.stream()
                        .filter(NicFacts::isKnown)
                        .filter(card -> nics.stream().anyMatch(nic -> nic.hca().equals(card.hca())))
                        .toList();
        if (used.isEmpty()) {
            return List.of();
        }
        List<Finding> findings = new ArrayList<>();
        findings.add(cards(used));
        findings.add(ports(nics, used));
        findings.add(relaxedOrdering(used));
        List<NicFacts> tried = used.stream().filter(card -> card.trial().wasMade()).toList();
        if (tried.isEmpty()) {
            findings.add(GPU.info("not tried: " + used.getFirst().trial().problem()));
        } else {
            findings.add(memory(tried));
            findings.add(queues(tried));
            findings.add(doorbells(tried));
        }
        return findings;
    }

    private static Finding cards(List<NicFacts> used) {
        String unfit = texts("; ", used, card -> String.join(", ", card.lacks()));
        return unfit.isEmpty()
                ? CARDS.ok(texts(", ", used, card -> "firmware " + card.firmware()))
                : CARDS.missing(
                        unfit,
                        "update the firmware (mlxfwmanager --online -u), or use Network.nvshmem");
    }

    private static Finding ports(List<NicPort> nics, List<NicFacts> used) {
        List<NicFacts.Port> ports =
                used.stream()
                        .flatMap(card -> card.ports().stream())
                        .filter(
                                port ->
                                        nics.stream()
                                                .anyMatch(nic -> nic.name().equals(port.name())))
                        .toList();
        List<String> down =
                ports.stream()
                        .filter(port -> !port.active() || port.gids().isEmpty())
                        .map(port -> port.name() + problem(port))
                        .toList();
        return down.isEmpty()
                ? PORTS.ok(ports.stream().map(IbgdaCheck::text).collect(Collectors.joining(", ")))
                : PORTS.missing(
                        String.join(", ", down),
                        "check the cable and the subnet manager (ibstat), give the network device an address,"
                                + " or name other ports by a NIC mapping (docs/nics.md)");
    }

    private static String problem(NicFacts.Port port) {
        return port.active() ? " has no address" : " is not active";
    }

    private static String text(NicFacts.Port port) {
        return "%s MTU %s, addresses %s".formatted(port.name(), port.mtu(), port.gids().size());
    }

    private static Finding relaxedOrdering(List<NicFacts> used) {
        List<String> without =
                used.stream()
                        .filter(card -> card.lacks().isEmpty() && !card.relaxedOrdering())
                        .map(NicFacts::hca)
                        .toList();
        return without.isEmpty()
                ? ORDERING.ok("on every card")
                : ORDERING.info(
                        "not on " + String.join(", ", without) + ": their writes keep their order");
    }

    private static Finding memory(List<NicFacts> tried) {
        String unreached = texts("; ", tried, card -> card.trial().memoryProblem());
        return unreached.isEmpty()
                ? MEMORY.ok(
                        texts(
                                ", ",
                                tried,
                                card ->
                                        card.trial().dmaBuf().isEmpty()
                                                ? "by dma-buf"
                                                : "by nvidia-peermem"))
                : MEMORY.missing(unreached, RdmaCheck.CURE);
    }

    private static Finding queues(List<NicFacts> tried) {
        String onHost = texts("; ", tried, card -> card.trial().queues());
        return onHost.isEmpty()
                ? QUEUES.ok("in memory of the GPU")
                : QUEUES.warn("in memory of the host, which is slower: " + onHost, RdmaCheck.CURE);
    }

    private static Finding doorbells(List<NicFacts> tried) {
        String byThread = texts("; ", tried, card -> card.trial().doorbells());
        return byThread.isEmpty()
                ? DOORBELLS.ok("rung by the GPU")
                : DOORBELLS.warn(
                        "a thread rings for the GPU: " + byThread, RdmaCheck.DRIVER_OPTIONS_CURE);
    }

    /** What there is to say of some cards, behind their names. */
    private static String texts(
            String separator, List<NicFacts> cards, Function<NicFacts, String> text) {
        return cards.stream()
                .filter(card -> !text.apply(card).isEmpty())
                .map(card -> card.hca() + " " + text.apply(card))
                .collect(Collectors.joining(separator));
    }
}
