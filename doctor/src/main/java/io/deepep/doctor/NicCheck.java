package io.deepep.doctor;

import io.deepep.cuda.topology.ExcludedNic;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** NICs and the libraries and limits that RDMA needs. */
final class NicCheck {
    static final Check PORTS = new Check("network", "RDMA ports");
    static final Check DEVICES = new Check("network", "RDMA devices");
    static final Check LIBRARIES = new Check("network", "RDMA libraries");
    static final Check VERBS = new Check("network", "/dev/infiniband");
    private static final Check LOCKED_MEMORY = new Check("network", "locked memory");
    private static final String LIMITS = "proc/self/limits";

    private NicCheck() {}

    static List<Finding> check(Machine machine, HostTopology host, NicMapping mapping) {
        List<Finding> findings = new ArrayList<>();
        findings.add(ports(mapping.nics()));
        for (ExcludedNic nic : mapping.excluded()) {
            findings.add(new Check("network", nic.name()).info(nic.reason()));
        }
        if (host.nics().isEmpty() && host.excluded().isEmpty()) {
            return findings;
        }
        findings.add(libraries(machine));
        findings.add(verbsDevices(machine));
        findings.add(lockedMemory(machine));
        findings.addAll(PortCheck.check(machine, mapping.nics()));
        return findings;
    }

    private static Finding ports(List<NicPort> nics) {
        double gbps = nics.stream().mapToDouble(NicPort::gbps).sum();
        return nics.isEmpty()
                ? PORTS.missing(
                        "none to use",
                        "lspci -d 15b3: ; sudo modprobe mlx5_ib; rdma link show; sudo ip link set dev DEVICE up")
                : PORTS.ok(String.format(Locale.ROOT, "%d, %.0f Gb/s together", nics.size(), gbps));
    }

    private static Finding libraries(Machine machine) {
        List<String> missing =
                Stream.of("libibverbs.so.1", "libmlx5.so.1")
                        .filter(library -> !machine.hasLibrary(library))
                        .toList();
        return missing.isEmpty()
                ? LIBRARIES.ok("libibverbs, libmlx5")
                : LIBRARIES.missing(
                        String.join(", ", missing) + " not found",
                        "sudo apt install libibverbs1 ibverbs-providers");
    }

    private static Finding verbsDevices(Machine machine) {
        boolean any =
                machine.names("dev/infiniband").stream()
                        .anyMatch(name -> name.startsWith("uverbs"));
        return any
                ? VERBS.ok("there")
                : VERBS.missing(
                        "no uverbs device",
                        "sudo modprobe ib_uverbs; in a container: --device=/dev/infiniband --cap-add=IPC_LOCK");
    }

    private static Finding lockedMemory(Machine machine) {
        String limit = machine.value(LIMITS, "Max locked memory").orElse("").split("\\s+", 2)[0];
        if (limit.isEmpty()) {
            return LOCKED_MEMORY.info("not known: /" + LIMITS + " does not tell");
        }
        return limit.equals("unlimited")
                ? LOCKED_MEMORY.ok("unlimited")
                : LOCKED_MEMORY.warn(
                        "limited to " + limit + " bytes: queues may not register",
                        "ulimit -l unlimited; in a container: --ulimit memlock=-1");
    }
}
