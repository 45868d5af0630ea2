package io.deepep.doctor;

import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** Whether GPUs can drive the NICs by {@code Network.ibgda()}. */
final class IbgdaCheck {
    private static final String TOPIC = "IBGDA";

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
            findings.add(
                    Finding.info(TOPIC, "GPU", "not tried: " + used.getFirst().trial().problem()));
        } else {
            findings.add(memory(tried));
            findings.add(queues(tried));
            findings.add(doorbells(tried));
        }
        return findings;
    }

    private static Finding cards(List<NicFacts> used) {
        List<String> unfit =
                texts(used, card -> !card.isDrivable(), card -> String.join(", ", card.lacks()));
        return unfit.isEmpty()
                ? Finding.ok(
                        TOPIC,
                        "cards",
                        String.join(
                                ", ",
                                texts(used, card -> true, card -> "firmware " + card.firmware())))
                : Finding.missing(
                        TOPIC,
                        "cards",
                        String.join("; ", unfit),
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
                ? Finding.ok(
                        TOPIC,
                        "ports",
                        ports.stream().map(IbgdaCheck::text).collect(Collectors.joining(", ")))
                : Finding.missing(
                        TOPIC,
                        "ports",
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
                texts(used, card -> card.isDrivable() && !card.relaxedOrdering(), card -> "");
        return without.isEmpty()
                ? Finding.ok(TOPIC, "relaxed ordering", "on every card")
                : Finding.info(
                        TOPIC,
                        "relaxed ordering",
                        "not on " + String.join(", ", without) + ": their writes keep their order");
    }

    private static Finding memory(List<NicFacts> tried) {
        List<String> unreached =
                texts(
                        tried,
                        card -> !card.trial().reachesMemory(),
                        card ->
                                "dma-buf: %s; nvidia-peermem: %s"
                                        .formatted(card.trial().dmaBuf(), card.trial().peerMem()));
        return unreached.isEmpty()
                ? Finding.ok(
                        TOPIC,
                        "GPU memory",
                        String.join(
                                ", ",
                                texts(
                                        tried,
                                        card -> true,
                                        card ->
                                                card.trial().dmaBuf().isEmpty()
                                                        ? "by dma-buf"
                                                        : "by nvidia-peermem")))
                : Finding.missing(
                        TOPIC, "GPU memory", String.join("; ", unreached), RdmaCheck.CURE);
    }

    private static Finding queues(List<NicFacts> tried) {
        List<String> onHost =
                texts(
                        tried,
                        card -> !card.trial().queues().isEmpty(),
                        card -> card.trial().queues());
        return onHost.isEmpty()
                ? Finding.ok(TOPIC, "queues", "in memory of the GPU")
                : Finding.warn(
                        TOPIC,
                        "queues",
                        "in memory of the host, which is slower: " + String.join("; ", onHost),
                        RdmaCheck.CURE);
    }

    private static Finding doorbells(List<NicFacts> tried) {
        List<String> byThread =
                texts(
                        tried,
                        card -> !card.trial().doorbells().isEmpty(),
                        card -> card.trial().doorbells());
        return byThread.isEmpty()
                ? Finding.ok(TOPIC, "doorbells", "rung by the GPU")
                : Finding.warn(
                        TOPIC,
                        "doorbells",
                        "a thread rings for the GPU: " + String.join("; ", byThread),
                        RdmaCheck.DRIVER_OPTIONS_CURE);
    }

    /** Of some cards, by name. */
    private static List<String> texts(
            List<NicFacts> cards, Predicate<NicFacts> which, Function<NicFacts, String> text) {
        return cards.stream()
                .filter(which)
                .map(card -> (card.hca() + " " + text.apply(card)).strip())
                .toList();
    }
}
