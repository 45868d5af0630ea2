package io.deepep.cuda.topology;

import io.deepep.spi.posix.SysFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/**
 * The PCI part of sysfs. A device's real path is the way to it:
 *
 * <pre>
 *   devices/pci0000:16 / 0000:16:01.0 / 0000:17:00.0 / 0000:18:00.0 / 0000:19:00.0
 *           host bridge  root port      upstream and downstream port   device
 * </pre>
 */
final class SysfsPci {
    private static final Pattern HOST_BRIDGE =
            Pattern.compile("pci\\p{XDigit}{4,8}:\\p{XDigit}{2}");
    private static final String NVIDIA = "0x10de";
    // VGA and 3D controllers; NVSwitches (0x0680) and audio functions (0x0403) are not GPUs.
    private static final List<String> GPU_CLASSES = List.of("0x0300", "0x0302");

    private final Path sys;
    private final OptionalInt onlyNode;

    SysfsPci(Path sys) {
        this.sys = sys;
        this.onlyNode = onlyNode(sys.resolve("devices/system/node/online"));
    }

    /** The number of the only NUMA node; empty if there are several ("0-1", "0,2"). */
    private static OptionalInt onlyNode(Path online) {
        return SysFiles.number(SysFiles.text(online).orElse("0"))
                .filter(node -> node >= 0)
                .map(OptionalInt::of)
                .orElse(OptionalInt.empty());
    }

    /** NVIDIA's GPUs, whether or not this process may use them. */
    List<PciDevice> gpus() {
        Path devices = sys.resolve("bus/pci/devices");
        return SysFiles.names(devices).stream()
                .map(devices::resolve)
                .filter(SysfsPci::isGpu)
                .flatMap(folder -> device(folder).stream())
                .toList();
    }

    private static boolean isGpu(Path device) {
        String kind = SysFiles.text(device.resolve("class")).orElse("");
        return SysFiles.text(device.resolve("vendor")).orElse("").equals(NVIDIA)
                && GPU_CLASSES.stream().anyMatch(kind::startsWith)
                && !Files.exists(device.resolve("physfn")); // a slice of another one
    }

    /** The device a folder or a link leads to; empty for one that is not on PCI. */
    Optional<PciDevice> device(Path link) {
        return SysFiles.target(link).flatMap(this::deviceAt);
    }

    private Optional<PciDevice> deviceAt(Path folder) {
        String hostBridge = "";
        List<PciAddress> way = new ArrayList<>();
        for (Path element : folder) {
            String name = element.toString();
            if (HOST_BRIDGE.matcher(name).matches()) {
                hostBridge = name;
                way.clear();
            } else {
                PciAddress.find(name).ifPresent(way::add);
            }
        }
        if (way.isEmpty()) {
            return Optional.empty();
        }
        PciAddress address = way.removeLast();
        return Optional.of(new PciDevice(address, hostBridge, way, numaNode(folder)));
    }

    /** Firmware often tells the node of a bridge alone; the devices below it then say -1. */
    private OptionalInt numaNode(Path folder) {
        for (Path at = folder; at != null && !at.equals(sys); at = at.getParent()) {
            int node = SysFiles.number(at.resolve("numa_node")).orElse(-1);
            if (node >= 0) {
                return OptionalInt.of(node);
            }
        }
        return onlyNode;
    }
}
