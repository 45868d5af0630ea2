package io.deepep.doctor;

import io.deepep.NormalDefaults;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Whether NICs can be opened, and have the queue pairs that several nodes need. */
final class QueueCheck {
    private static final Check QUEUE_PAIRS = new Check("network", "queue pairs");

    /**
     * The largest group that {@code plan start} plans, which normal mode crosses with a queue pair
     * for each block and peer.
     */
    private static final int WANTED_NODES = 256;

    /** The deepest queue that the library asks for: low-latency mode with thousands of tokens. */
    private static final int WANTED_ENTRIES = 32768;

    private QueueCheck() {}

    static List<Finding> check(NicMapping mapping, GpuFacts gpus, List<NicFacts> cards) {
        List<NicPort> nics = mapping.nics();
        List<String> known = new ArrayList<>();
        List<String> few = new ArrayList<>();
        List<String> closed = new ArrayList<>();
        int numSms = NormalDefaults.acrossNodes(WANTED_NODES).combine().numSms();
        for (NicFacts nic : cards) {
            if (nics.stream().noneMatch(port -> port.hca().equals(nic.hca()))) {
                continue;
            }
            if (!nic.isKnown()) {
                closed.add(nic.hca() + ": " + nic.problem());
                continue;
            }
            known.add(
                    String.format(
                            Locale.ROOT,
                            "%s %d of %d entries",
                            nic.hca(),
                            nic.maxQueuePairs(),
                            nic.maxQueuePairEntries()));
            if (nic.maxQueuePairs() / numSms + 1 < WANTED_NODES
                    || nic.maxQueuePairEntries() < WANTED_ENTRIES) {
                few.add(known.getLast());
            }
        }
        unlisted(mapping, gpus, cards).forEach(hca -> closed.add(hca + ": it is not listed"));
        List<Finding> findings = new ArrayList<>();
        if (!few.isEmpty()) {
            findings.add(
                    QUEUE_PAIRS.warn(
                            String.join(", ", few),
                            ("a rank needs a queue pair for each SM and other node (%s SMs unless Config.withNumSms"
                                            + " says otherwise), and low-latency mode 4 entries for each token: stay below these"
                                            + " limits, or let fewer ranks share a NIC")
                                    .formatted(numSms)));
        } else if (!known.isEmpty()) {
            findings.add(QUEUE_PAIRS.ok(String.join(", ", known)));
        }
        if (!closed.isEmpty()) {
            findings.add(
                    NicCheck.DEVICES.missing(
                            "libibverbs cannot open " + String.join("; ", closed),
                            "ls -l /dev/infiniband (this user must read and write it), ulimit -l, ibv_devinfo;"
                                    + " or name the NICs that this container has by a NIC mapping (docs/nics.md)"));
        }
        return findings;
    }

    /**
     * Those that are to serve GPUs of this process, but are not among the cards. Sysfs shows all of
     * the host; libibverbs lists those whose device files the container has.
     */
    private static List<String> unlisted(NicMapping mapping, GpuFacts gpus, List<NicFacts> cards) {
        if (cards.isEmpty()) { // without libibverbs
            return List.of();
        }
        return mapping.assignments().stream()
                .filter(assignment -> gpus.at(assignment.gpu().address()).isPresent())
                .flatMap(assignment -> assignment.nics().stream())
                .map(NicPort::hca)
                .filter(hca -> cards.stream().noneMatch(card -> card.hca().equals(hca)))
                .distinct()
                .toList();
    }
}
