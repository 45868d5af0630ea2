package io.deepep.cuda.topology;

import java.nio.file.Path;
import java.util.List;

/**
 * GPUs and NICs of a host. Of the host, not of a process: what {@code CUDA_VISIBLE_DEVICES} hides
 * is listed too, so that every process of a host comes to the same mapping.
 *
 * @param gpus in order of their PCI addresses, as {@code nvidia-smi} numbers them
 * @param nics ports that can carry RDMA, in order of their PCI addresses
 * @param excluded the others, with reasons
 */
public record HostTopology(List<PciDevice> gpus, List<NicPort> nics, List<ExcludedNic> excluded) {
    /** Where the kernel shows its devices. */
    public static final Path SYSFS = Path.of("/sys");

    /** Sorts, so that nothing depends on the order given. */
    public HostTopology {
        gpus = gpus.stream().sorted((a, b) -> a.address().compareTo(b.address())).toList();
        nics = nics.stream().sorted(NicPort.PCI_ORDER).toList();
        excluded = List.copyOf(excluded);
    }

    /**
     * Reads a host. What cannot be read counts as not there.
     *
     * @param sysfs usually {@link #SYSFS}
     */
    public static HostTopology read(Path sysfs) {
        Path sys = SysFiles.target(sysfs).orElse(sysfs);
        SysfsPci pci = new SysfsPci(sys);
        SysfsNics nics = new SysfsNics(sys, pci);
        return new HostTopology(pci.gpus(), nics.ports(), nics.excluded());
    }

    /** The number of a GPU in {@link #gpus()}; -1 if the host has none at that address. */
    public int gpuIdx(PciAddress address) {
        for (int i = 0; i < gpus.size(); i++) {
            if (gpus.get(i).address().equals(address)) {
                return i;
            }
        }
        return -1;
    }
}
