package io.deepep.cuda.topology;

import java.util.Comparator;
import java.util.Optional;

/**
 * A port of a NIC that can carry RDMA: a physical one, and its link is up.
 *
 * @param hca the RDMA device's name, for example {@code mlx5_0}
 * @param port number of the port, from 1
 * @param device the PCI device it belongs to
 * @param driver kernel driver, for example {@code mlx5_core}; empty where sysfs does not tell
 * @param gbps speed in Gb/s; of a bond, of all its links that are up
 * @param bond present where the RDMA device is a bond
 */
public record NicPort(
        String hca,
        int port,
        PciDevice device,
        String driver,
        LinkLayer linkLayer,
        double gbps,
        Optional<Bond> bond) {
    /** By place on PCI: names depend on the order in which drivers found the devices. */
    static final Comparator<NicPort> PCI_ORDER =
            Comparator.comparing((NicPort nic) -> nic.device.address())
                    .thenComparing(NicPort::hca)
                    .thenComparingInt(NicPort::port);

    /** As {@code NVSHMEM_HCA_LIST} names it: {@code mlx5_0:1}. */
    public String name() {
        return hca + ":" + port;
    }

    /** Links that a single queue pair cannot fill together: more than 1 only for a bond. */
    public int numPaths() {
        return bond.map(Bond::numPaths).orElse(1);
    }
}
