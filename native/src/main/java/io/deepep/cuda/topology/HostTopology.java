package io.deepep.cuda.topology;

import io.deepep.spi.posix.SysFiles;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * GPUs and NICs of a host. Of the host, not of a process: what {@code CUDA_VISIBLE_DEVICES} hides
 * is listed too, so that every process of a host comes to the same mapping.
 *
 * @param gpus in order of their PCI addresses, as {@code nvidia-smi} numbers them
 * @param nics ports that can carry RDMA, in order of their PCI addresses
 * @param excluded the others, with reasons
 */
public record HostTopology(List<PciDevice> gpus, List<NicPort> nics, List<ExcludedNic> excluded) {
    /**
     * Where the kernel shows its devices: {@code /sys}, or what {@code -Ddeepep.sysfs} names, for a
     * container that has the host's elsewhere.
     */
    public static final Path SYSFS = Path.of(System.getProperty("deepep.sysfs", "/sys"));

    private static final int MAX_GIDS = 256;

    /** Sorts, so that nothing depends on the order given. */
    public HostTopology {
        gpus = gpus.stream().sorted(Comparator.comparing(PciDevice::address)).toList();
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

    /**
     * What the kernel calls the addresses of a port by their index: {@code RoCE v2}, {@code IB/RoCE
     * v1}, or nothing.
     */
    public static List<String> gidTypes(Path sysfs, NicPort port) {
        Path types =
                sysfs.resolve("class/infiniband")
                        .resolve(port.hca())
                        .resolve("ports/" + port.port() + "/gid_attrs/types");
        return IntStream.range(0, MAX_GIDS)
                .mapToObj(idx -> SysFiles.text(types.resolve(Integer.toString(idx))).orElse(""))
                .toList();
    }

    /** The number of a GPU in {@link #gpus()}; -1 if the host has none at that address. */
    public int gpuIdx(PciAddress address) {
        return gpus.stream().map(PciDevice::address).toList().indexOf(address);
    }
}
