package io.deepep.cuda.topology;

import java.util.List;
import java.util.OptionalInt;

/**
 * A device and the way to it.
 *
 * @param hostBridge name of the root complex it hangs from, for example {@code pci0000:16}; empty
 *     where sysfs does not tell
 * @param bridges the ports passed from there to the device: root port, then an upstream and a
 *     downstream port for every switch
 * @param numaNode empty where the host has several nodes and does not tell
 */
public record PciDevice(
        PciAddress address, String hostBridge, List<PciAddress> bridges, OptionalInt numaNode) {
    public PciDevice {
        bridges = List.copyOf(bridges);
    }

    /** What lies between this device and another. Symmetric. */
    public PciDistance distanceTo(PciDevice other) {
        if (hostBridge.isEmpty() || !hostBridge.equals(other.hostBridge)) {
            boolean sameNode = numaNode.isPresent() && numaNode.equals(other.numaNode);
            return sameNode ? PciDistance.NODE : PciDistance.SYS;
        }
        int shared = numSharedBridges(other);
        if (shared == 0) {
            return PciDistance.PHB;
        }
        // Below the last shared port (a switch's upstream port) each has its downstream port. More
        // than one on either side means another switch.
        boolean oneSwitch = bridges.size() - shared <= 1 && other.bridges.size() - shared <= 1;
        return oneSwitch ? PciDistance.PIX : PciDistance.PXB;
    }

    private int numSharedBridges(PciDevice other) {
        int most = Math.min(bridges.size(), other.bridges.size());
        int shared = 0;
        while (shared < most && bridges.get(shared).equals(other.bridges.get(shared))) {
            shared++;
        }
        return shared;
    }
}
