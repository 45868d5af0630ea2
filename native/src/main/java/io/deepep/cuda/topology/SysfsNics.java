package io.deepep.cuda.topology;

import io.deepep.spi.posix.SysFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The RDMA part of sysfs: {@code class/infiniband}, and the network interfaces behind it. */
final class SysfsNics {
    private static final Map<String, LinkLayer> LINK_LAYERS =
            Map.of("InfiniBand", LinkLayer.INFINIBAND, "Ethernet", LinkLayer.ROCE);

    private final Path sys;
    private final SysfsPci pci;
    private final SysfsBonds bonds;
    private final List<NicPort> ports = new ArrayList<>();
    private final List<ExcludedNic> excluded = new ArrayList<>();

    SysfsNics(Path sys, SysfsPci pci) {
        this.sys = sys;
        this.pci = pci;
        this.bonds = new SysfsBonds(sys);
        readAll();
    }

    /** Ports that can carry RDMA. */
    List<NicPort> ports() {
        return ports;
    }

    /** The others, by name. */
    List<ExcludedNic> excluded() {
        return excluded;
    }

    private void readAll() {
        Path all = sys.resolve("class/infiniband");
        Set<Path> listed = new HashSet<>();
        List<String> names = SysFiles.names(all);
        for (String name : names) {
            SysFiles.target(all.resolve(name).resolve("device")).ifPresent(listed::add);
        }
        for (String name : names) {
            readHca(name, all.resolve(name), listed);
        }
    }

    /**
     * Reads one RDMA device.
     *
     * @param listed the PCI folders of all RDMA devices: in a container the physical function of a
     *     virtual one may be hidden, and then the virtual one is what there is to use
     */
    private void readHca(String hca, Path folder, Set<Path> listed) {
        Path deviceFolder = folder.resolve("device");
        Optional<PciDevice> device = pci.device(deviceFolder);
        if (device.isEmpty()) {
            exclude(hca, "not a PCI device: RDMA in software cannot reach GPU memory");
            return;
        }
        Optional<Path> physical = SysFiles.target(deviceFolder.resolve("physfn"));
        if (physical.isPresent() && listed.contains(physical.get())) {
            exclude(
                    hca,
                    "virtual function of %s, which is used itself"
                            .formatted(physical.get().getFileName()));
            return;
        }
        String own = SysFiles.targetName(deviceFolder).orElse("");
        if (PciAddress.find(own).isEmpty()) {
            exclude(hca, "sub-function " + own + " of " + device.get().address());
            return;
        }
        String driver = SysFiles.targetName(deviceFolder.resolve("driver")).orElse("");
        for (String port : SysFiles.names(folder.resolve("ports"))) {
            SysFiles.number(port)
                    .ifPresent(number -> readPort(hca, number, folder, device.get(), driver));
        }
    }

    private void readPort(String hca, int port, Path folder, PciDevice device, String driver) {
        String name = hca + ":" + port;
        Path files = folder.resolve("ports").resolve(Integer.toString(port));
        String layerText = SysFiles.text(files.resolve("link_layer")).orElse("unknown");
        LinkLayer layer = LINK_LAYERS.get(layerText);
        if (layer == null) {
            exclude(name, "link layer " + layerText + " is neither InfiniBand nor Ethernet");
            return;
        }
        // "4: ACTIVE", and for the physical state "5: LinkUp".
        String state = afterColon(SysFiles.text(files.resolve("state")).orElse("unknown"));
        if (!state.equals("ACTIVE")) {
            String link = afterColon(SysFiles.text(files.resolve("phys_state")).orElse("unknown"));
            exclude(name, "port is " + state + " (physical state " + link + ")");
            return;
        }
        Optional<Bond> bond = bonds.of(folder, port);
        double rate = gbps(SysFiles.text(files.resolve("rate")).orElse(""));
        // A bond's RDMA device reports the speed of one link.
        double speed = bond.map(bonds::gbps).map(all -> Math.max(all, rate)).orElse(rate);
        ports.add(new NicPort(hca, port, device, driver, layer, speed, bond));
    }

    private void exclude(String name, String reason) {
        excluded.add(new ExcludedNic(name, reason));
    }

    private static String afterColon(String text) {
        return text.substring(text.indexOf(':') + 1).strip();
    }

    /** From "400 Gb/sec (4X NDR)"; 0 where it says something else. */
    private static double gbps(String rate) {
        String first = rate.split(" ", 2)[0];
        return first.matches("\\d+(\\.\\d+)?") ? Double.parseDouble(first) : 0;
    }
}
