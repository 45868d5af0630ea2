package io.deepep.doctor;

import io.deepep.cuda.topology.ExcludedNic;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicPort;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** NICs and the libraries and limits that RDMA needs. */
final class NicCheck {
    private static final String TOPIC = "network";
    // Size of a table in NVSHMEM's InfiniBand transports, which do not check its end.
    private static final int MAX_HCAS = 48;

    private NicCheck() {}

    static List<Finding> check(Machine machine, HostTopology host, NicMapping mapping) {
        List<Finding> findings = new ArrayList<>();
        findings.add(ports(mapping.nics()));
        for (ExcludedNic nic : mapping.excluded()) {
            findings.add(Finding.info(TOPIC, nic.name(), nic.reason()));
        }
        if (host.nics().isEmpty() && host.excluded().isEmpty()) {
            return findings;
        }
        int numHcas = machine.names("sys/class/infiniband").size();
        if (numHcas > MAX_HCAS) {
            findings.add(
                    Finding.missing(
                            TOPIC,
                            "RDMA devices",
                            "%s are more than the %s that NVSHMEM has room for"
                                    .formatted(numHcas, MAX_HCAS),
                            "remove virtual functions: echo 0 | sudo tee /sys/class/infiniband/mlx5_0/device/sriov_numvfs"));
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
                ? Finding.missing(
                        TOPIC,
                        "RDMA ports",
                        "none to use",
                        "lspci -d 15b3: ; sudo modprobe mlx5_ib; rdma link show; sudo ip link set dev DEVICE up")
                : Finding.ok(
                        TOPIC,
                        "RDMA ports",
                        String.format(Locale.ROOT, "%d, %.0f Gb/s together", nics.size(), gbps));
    }

    private static Finding libraries(Machine machine) {
        List<String> missing =
                List.of("libibverbs.so.1", "libmlx5.so.1").stream()
                        .filter(library -> !machine.hasLibrary(library))
                        .toList();
        return missing.isEmpty()
                ? Finding.ok(TOPIC, "RDMA libraries", "libibverbs, libmlx5")
                : Finding.missing(
                        TOPIC,
                        "RDMA libraries",
                        String.join(", ", missing) + " not found",
                        "sudo apt install libibverbs1 ibverbs-providers");
    }

    private static Finding verbsDevices(Machine machine) {
        boolean any =
                machine.names("dev/infiniband").stream()
                        .anyMatch(name -> name.startsWith("uverbs"));
        return any
                ? Finding.ok(TOPIC, "/dev/infiniband", "there")
                : Finding.missing(
                        TOPIC,
                        "/dev/infiniband",
                        "no uverbs device",
                        "sudo modprobe ib_uverbs; in a container: --device=/dev/infiniband --cap-add=IPC_LOCK");
    }

    private static Finding lockedMemory(Machine machine) {
        String item = "locked memory";
        String limit =
                machine.text("proc/self/limits").stream()
                        .flatMap(String::lines)
                        .filter(line -> line.startsWith("Max locked memory"))
                        .map(line -> line.substring("Max locked memory".length()).strip())
                        .map(line -> line.split("\\s+", 2)[0])
                        .findFirst()
                        .orElse("unknown");
        return limit.equals("unlimited")
                ? Finding.ok(TOPIC, item, "unlimited")
                : Finding.warn(
                        TOPIC,
                        item,
                        "limited to " + limit + " bytes: queues may not register",
                        "ulimit -l unlimited; in a container: --ulimit memlock=-1");
    }
}
