package io.deepep.testkit.sysfs;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Builds a sysfs in a folder, from a recording or piece by piece. */
public final class SysfsTree {
    private static final Pattern PCI_ADDRESS =
            Pattern.compile("\\p{XDigit}{4,8}:\\p{XDigit}{2}:\\p{XDigit}{2}\\.[0-7]");

    private final Path root;
    private final List<Path> links = new ArrayList<>();

    /** A tree in an empty folder. */
    public SysfsTree(Path root) {
        this.root = root;
    }

    /** Builds a recorded tree and returns its root. */
    public static Path build(String recording, Path root) {
        SysfsTree tree = new SysfsTree(root);
        String folder = "";
        for (String line : lines(recording)) {
            if (line.startsWith("[")) {
                folder = line.substring(1, line.length() - 1);
                tree.folder(folder);
            } else if (line.contains(" -> ")) {
                String[] link = line.split(" -> ", 2);
                tree.link(folder + "/" + link[0], link[1]);
            } else if (!line.startsWith("#") && !line.isBlank()) {
                String[] file = line.split(" = ?", 2);
                tree.file(folder + "/" + file[0], file[1]);
            }
        }
        return tree.finish();
    }

    private static List<String> lines(String recording) {
        try (InputStream in = SysfsTree.class.getResourceAsStream(recording)) {
            return new String(
                            Objects.requireNonNull(in, recording).readAllBytes(),
                            StandardCharsets.UTF_8)
                    .lines()
                    .toList();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** Writes a file as the kernel would, with a line end. */
    public SysfsTree file(String path, String content) {
        Path file = root.resolve(path);
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, content + "\n");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return this;
    }

    /** Makes a link. */
    public SysfsTree link(String path, String target) {
        Path link = root.resolve(path);
        try {
            Files.createDirectories(link.getParent());
            Files.createSymbolicLink(link, Path.of(target));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        links.add(link);
        return this;
    }

    private void folder(String path) {
        try {
            Files.createDirectories(root.resolve(path));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds a GPU at a path like {@code pci0000:16/0000:16:01.0/0000:17:00.0}. */
    public SysfsTree gpu(String path, int numaNode) {
        String folder = "devices/" + path;
        file(folder + "/class", "0x030200");
        file(folder + "/vendor", "0x10de");
        return file(folder + "/numa_node", Integer.toString(numaNode));
    }

    /** Adds an active NIC with one RDMA device of one port. */
    public SysfsTree nic(String path, int numaNode, String hca, String linkLayer, int gbps) {
        String folder = "devices/" + path;
        String name = path.substring(path.lastIndexOf('/') + 1);
        file(folder + "/class", "0x020700");
        file(folder + "/vendor", "0x15b3");
        file(folder + "/numa_node", Integer.toString(numaNode));
        link(folder + "/driver", up(folder) + "bus/pci/drivers/mlx5_core");
        link("class/infiniband/" + hca, "../../" + folder + "/infiniband/" + hca);
        link(folder + "/infiniband/" + hca + "/device", "../../../" + name);
        String port = folder + "/infiniband/" + hca + "/ports/1";
        file(port + "/link_layer", linkLayer);
        file(port + "/state", "4: ACTIVE");
        file(port + "/phys_state", "5: LinkUp");
        return file(port + "/rate", gbps + " Gb/sec (4X NDR)");
    }

    /** The way from a folder up to the root. */
    public static String up(String folder) {
        return "../".repeat(folder.split("/").length);
    }

    /** Adds what follows from the rest: where links lead, and the flat list of PCI devices. */
    public Path finish() {
        try {
            for (Path link : links) {
                Files.createDirectories(
                        link.getParent().resolve(Files.readSymbolicLink(link)).normalize());
            }
            Path flat = Files.createDirectories(root.resolve("bus/pci/devices"));
            for (Path device : pciDevices()) {
                Files.createSymbolicLink(
                        flat.resolve(device.getFileName()), flat.relativize(device));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return root;
    }

    private List<Path> pciDevices() throws IOException {
        Path devices = root.resolve("devices");
        if (!Files.exists(devices)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(devices)) {
            return all.filter(path -> Files.exists(path.resolve("class")))
                    .filter(path -> PCI_ADDRESS.matcher(path.getFileName().toString()).matches())
                    .toList();
        }
    }
}
