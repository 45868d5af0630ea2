package io.deepep.cuda.topology;

import io.deepep.testkit.sysfs.SysfsTree;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;

/**
 * A generated host: sockets with root complexes, each complex with slots, each slot a switch of two
 * levels, and devices somewhere below. It knows what lies between two devices without looking at
 * paths.
 */
final class HostShape {
    /** Where a device hangs: complex of a socket, slot of a complex, leaf switch of a slot. */
    record Place(int socket, int complex, int slot, int leaf, String path) {
        PciDistance distanceTo(Place other) {
            if (socket != other.socket) {
                return PciDistance.SYS;
            }
            if (complex != other.complex) {
                return PciDistance.NODE;
            }
            if (slot != other.slot) {
                return PciDistance.PHB;
            }
            return leaf == other.leaf ? PciDistance.PIX : PciDistance.PXB;
        }
    }

    private final Random random;
    private final int numSockets;
    private int numDevices;
    final List<Place> gpus = new ArrayList<>();
    final List<Place> nics = new ArrayList<>();

    HostShape(long seed, int numSockets, int numGpus, int numNics) {
        this.random = new Random(seed);
        this.numSockets = numSockets;
        for (int i = 0; i < numGpus; i++) {
            gpus.add(place());
        }
        for (int i = 0; i < numNics; i++) {
            nics.add(place());
        }
    }

    private Place place() {
        int socket = random.nextInt(numSockets);
        int complex = random.nextInt(2);
        int slot = random.nextInt(2);
        int leaf = random.nextInt(2);
        int bus = socket * 64 + complex * 32;
        String root =
                String.format(Locale.ROOT, "pci0000:%02x/0000:%02x:%02x.0", bus, bus, slot + 1);
        int top = bus + 1 + slot * 12;
        // Outer switch, then the leaf switch below one of its ports, then a port for the device.
        String path =
                String.format(
                        Locale.ROOT,
                        "%s/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:00.0/0000:%02x:%02x.0/%04x:f0:00.0",
                        root,
                        top,
                        top + 1,
                        leaf,
                        top + 2 + leaf,
                        top + 4 + leaf,
                        numDevices % 32,
                        numDevices);
        numDevices++;
        return new Place(socket, complex, slot, leaf, path);
    }

    /** Writes the host as a sysfs. */
    void write(SysfsTree tree) {
        tree.file("devices/system/node/online", "0-" + numSockets);
        for (Place gpu : gpus) {
            tree.gpu(gpu.path, gpu.socket);
        }
        for (int i = 0; i < nics.size(); i++) {
            tree.nic(nics.get(i).path, nics.get(i).socket, "mlx5_" + i, "InfiniBand", 400);
        }
    }

    /** The host as it has to be read. */
    HostTopology topology() {
        List<NicPort> ports = new ArrayList<>();
        for (int i = 0; i < nics.size(); i++) {
            ports.add(
                    new NicPort(
                            "mlx5_" + i,
                            1,
                            device(nics.get(i)),
                            "mlx5_core",
                            LinkLayer.INFINIBAND,
                            400,
                            Optional.empty()));
        }
        return new HostTopology(gpus.stream().map(HostShape::device).toList(), ports, List.of());
    }

    private static PciDevice device(Place place) {
        List<String> names = List.of(place.path.split("/"));
        List<PciAddress> way =
                new ArrayList<>(names.stream().skip(1).map(PciAddress::parse).toList());
        PciAddress address = way.removeLast();
        return new PciDevice(address, names.getFirst(), way, OptionalInt.of(place.socket));
    }

    /** The place of a device: its domain is its number. */
    Place placeOf(PciDevice device) {
        int number = device.address().domain();
        return number < gpus.size() ? gpus.get(number) : nics.get(number - gpus.size());
    }
}
