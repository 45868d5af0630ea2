package io.deepep.cuda.topology;

import io.deepep.spi.posix.SysFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Bonding in sysfs. The driver merges the RDMA devices of bonded interfaces of one NIC into one
 * ({@code mlx5_bond_0}) whose network interface is the bond.
 */
final class SysfsBonds {
    private static final double MBPS_PER_GBPS = 1000;

    private final Path interfaces;

    SysfsBonds(Path sys) {
        this.interfaces = sys.resolve("class/net");
    }

    /** The bond behind a port of an RDMA device. */
    Optional<Bond> of(Path hcaFolder, int port) {
        return interfacesOf(hcaFolder, port)
                .flatMap(name -> bondOf(hcaFolder, name).stream())
                .findFirst();
    }

    /** The interface of the port's addresses; with older kernels, those of the PCI device. */
    private Stream<String> interfacesOf(Path hcaFolder, int port) {
        Path addresses = hcaFolder.resolve("ports/" + port + "/gid_attrs/ndevs");
        List<String> named =
                SysFiles.names(addresses).stream()
                        .flatMap(index -> SysFiles.text(addresses.resolve(index)).stream())
                        .distinct()
                        .toList();
        return named.isEmpty()
                ? SysFiles.names(hcaFolder.resolve("device/net")).stream()
                : named.stream();
    }

    private Optional<Bond> bondOf(Path hcaFolder, String name) {
        if (isBond(name)) {
            return Optional.of(read(name));
        }
        // The name of an interface in a bond: the RDMA device is merged only where it says so.
        boolean merged = hcaFolder.getFileName().toString().contains("bond");
        return SysFiles.targetName(interfaces.resolve(name).resolve("master"))
                .filter(master -> merged && isBond(master))
                .map(this::read);
    }

    private boolean isBond(String name) {
        return Files.isDirectory(interfaces.resolve(name).resolve("bonding"));
    }

    private Bond read(String name) {
        Path bonding = interfaces.resolve(name).resolve("bonding");
        String mode = SysFiles.text(bonding.resolve("mode")).orElse("unknown").split(" ", 2)[0];
        String slaves = SysFiles.text(bonding.resolve("slaves")).orElse("");
        Map<Boolean, List<String>> byState =
                Stream.of(slaves.split("\\s+"))
                        .filter(slave -> !slave.isEmpty())
                        .sorted()
                        .collect(Collectors.partitioningBy(this::isUp));
        return new Bond(name, mode, byState.get(true), byState.get(false));
    }

    private boolean isUp(String name) {
        return SysFiles.text(interfaces.resolve(name).resolve("operstate"))
                .orElse("unknown")
                .equals("up");
    }

    /** Speed of the links that carry traffic; 0 where it is not told. */
    double gbps(Bond bond) {
        return bond.activeSlaves().stream()
                .limit(bond.numPaths())
                .flatMap(
                        slave ->
                                SysFiles.number(interfaces.resolve(slave).resolve("speed"))
                                        .stream())
                .filter(mbps -> mbps > 0)
                .mapToDouble(mbps -> mbps / MBPS_PER_GBPS)
                .sum();
    }
}
