package io.deepep.doctor;

import io.deepep.cuda.topology.LinkLayer;
import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Addresses and packet sizes of ports, as far as sysfs tells. */
final class PortCheck {
    static final Check GIDS = new Check("network", "GIDs");
    private static final Check MTU = new Check("network", "MTU");

    /** Room for an RDMA packet of 4096 bytes and its headers in an Ethernet frame. */
    private static final int WANTED_MTU = 4200;

    private PortCheck() {}

    static List<Finding> check(Machine machine, List<NicPort> nics) {
        List<Finding> findings = new ArrayList<>();
        packets(machine, nics, findings);
        addresses(machine, nics, findings);
        return findings;
    }

    /** Ethernet's: InfiniBand's subnet manager sets its own. */
    private static void packets(Machine machine, List<NicPort> nics, List<Finding> findings) {
        Map<String, Integer> mtus = new TreeMap<>();
        for (NicPort nic : nics) {
            if (nic.linkLayer() == LinkLayer.ROCE) {
                String folder = "sys/class/infiniband/" + nic.hca() + "/device/net";
                for (String name : machine.names(folder)) {
                    machine.text(folder + "/" + name + "/mtu")
                            .filter(text -> text.matches("\\d{1,9}"))
                            .ifPresent(text -> mtus.put(name, Integer.valueOf(text)));
                }
            }
        }
        List<String> small =
                mtus.entrySet().stream()
                        .filter(mtu -> mtu.getValue() < WANTED_MTU)
                        .map(mtu -> mtu.getKey() + " " + mtu.getValue())
                        .toList();
        if (!small.isEmpty()) {
            findings.add(
                    MTU.warn(
                            String.join(", ", small),
                            "sudo ip link set dev %s mtu 9000, on the switches too: RDMA packets of 4096 bytes need %s"
                                    .formatted(small.getFirst().split(" ", 2)[0], WANTED_MTU)));
        } else if (!mtus.isEmpty()) {
            int least = mtus.values().stream().min(Integer::compare).orElseThrow();
            findings.add(MTU.ok(Integer.toString(least)));
        }
    }

    private static void addresses(Machine machine, List<NicPort> nics, List<Finding> findings) {
        List<String> without = new ArrayList<>();
        boolean any = false;
        for (NicPort nic : nics) {
            String folder = "sys/class/infiniband/" + nic.hca() + "/ports/" + nic.port() + "/gids";
            List<String> gids =
                    machine.names(folder).stream()
                            .flatMap(name -> machine.text(folder + "/" + name).stream())
                            .toList();
            any |= !gids.isEmpty();
            // A table that was read, and holds nothing but zeros.
            if (!gids.isEmpty() && gids.stream().allMatch(gid -> gid.matches("[0:]*"))) {
                without.add(nic.name());
            }
        }
        if (!without.isEmpty()) {
            findings.add(
                    GIDS.missing(
                            "none at " + String.join(", ", without),
                            "give the port's network device an IP address, or name the other ports by a NIC mapping (docs/nics.md)"));
        } else if (any) {
            findings.add(GIDS.ok("at every port"));
        }
    }
}
