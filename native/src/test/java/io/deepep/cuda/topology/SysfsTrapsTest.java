package io.deepep.cuda.topology;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.sysfs.SysfsTree;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What real hosts have that simple readers stumble over. */
class SysfsTrapsTest {
    private static final String SWITCH = "pci0000:16/0000:16:01.0/0000:17:00.0/";
    private static final String GPU = SWITCH + "0000:18:00.0/0000:19:00.0";
    private static final String NIC = SWITCH + "0000:18:01.0/0000:1a:00.0";

    @TempDir private Path folder;
    private SysfsTree tree;

    @BeforeEach
    void createTree() {
        tree = new SysfsTree(folder);
    }

    private HostTopology read() {
        return HostTopology.read(tree.finish());
    }

    private static String excluded(HostTopology host, String name) {
        return host.excluded().stream()
                .filter(nic -> nic.name().equals(name))
                .map(ExcludedNic::reason)
                .findFirst()
                .orElse("not excluded");
    }

    private static PciDistance distance(HostTopology host) {
        return host.gpus().getFirst().distanceTo(host.nics().getFirst().device());
    }

    @Test
    void virtualFunctionIsUsedWhereItsPhysicalOneIsHidden() {
        tree.nic(SWITCH + "0000:18:01.0/0000:1a:00.2", 0, "mlx5_7", "Ethernet", 100);
        tree.link("devices/" + SWITCH + "0000:18:01.0/0000:1a:00.2/physfn", "../0000:1a:00.0");
        assertThat(read().nics()).extracting(NicPort::name).containsExactly("mlx5_7:1");
    }

    @Test
    void virtualFunctionOfListedNicIsExcluded() {
        tree.nic(NIC, 0, "mlx5_0", "Ethernet", 100);
        tree.nic(SWITCH + "0000:18:01.0/0000:1a:00.2", 0, "mlx5_7", "Ethernet", 100);
        tree.link("devices/" + SWITCH + "0000:18:01.0/0000:1a:00.2/physfn", "../0000:1a:00.0");
        HostTopology host = read();
        assertThat(host.nics()).extracting(NicPort::name).containsExactly("mlx5_0:1");
        assertThat(excluded(host, "mlx5_7"))
                .isEqualTo("virtual function of 0000:1a:00.0, which is used itself");
    }

    @Test
    void subFunctionIsExcluded() {
        tree.nic(NIC, 0, "mlx5_0", "Ethernet", 100);
        String own = "devices/" + NIC + "/mlx5_core.sf.4/infiniband/mlx5_8";
        tree.link("class/infiniband/mlx5_8", "../../" + own);
        tree.link(own + "/device", "../../../mlx5_core.sf.4");
        assertThat(excluded(read(), "mlx5_8"))
                .isEqualTo("sub-function mlx5_core.sf.4 of 0000:1a:00.0");
    }

    @Test
    void softwareRdmaIsExcluded() {
        tree.link("class/infiniband/rxe0", "../../devices/virtual/infiniband/rxe0");
        assertThat(excluded(read(), "rxe0")).startsWith("not a PCI device");
    }

    @Test
    void portsInAllOtherStatesAreExcluded() {
        tree.nic(NIC, 0, "mlx5_0", "InfiniBand", 400);
        String ports = "devices/" + NIC + "/infiniband/mlx5_0/ports/";
        tree.file(ports + "1/state", "2: INIT");
        tree.file(ports + "2/link_layer", "InfiniBand");
        tree.file(ports + "2/state", "3: ARMED");
        tree.file(ports + "3/link_layer", "Unspecified");
        tree.file(ports + "3/state", "4: ACTIVE");
        HostTopology host = read();
        assertThat(host.nics()).isEmpty();
        assertThat(excluded(host, "mlx5_0:1")).isEqualTo("port is INIT (physical state LinkUp)");
        assertThat(excluded(host, "mlx5_0:2")).isEqualTo("port is ARMED (physical state unknown)");
        assertThat(excluded(host, "mlx5_0:3"))
                .isEqualTo("link layer Unspecified is neither InfiniBand nor Ethernet");
    }

    @Test
    void twoPortsOfOneNicAreTwo() {
        tree.gpu(GPU, 0);
        tree.nic(NIC, 0, "mlx5_0", "InfiniBand", 100);
        String second = "devices/" + NIC + "/infiniband/mlx5_0/ports/2";
        tree.file(second + "/link_layer", "InfiniBand");
        tree.file(second + "/state", "4: ACTIVE");
        tree.file(second + "/rate", "100 Gb/sec (4X EDR)");
        NicMapping mapping = NicMapping.of(read(), NicOverride.none());
        assertThat(mapping.assignments().getFirst().hcaList()).isEqualTo("mlx5_0:1,mlx5_0:2");
    }

    @Test
    void unknownNumaNodeOfSeveralIsFar() {
        tree.file("devices/system/node/online", "0-1");
        tree.gpu("pci0000:16/0000:16:01.0/0000:17:00.0", -1);
        tree.nic("pci0000:30/0000:30:01.0/0000:31:00.0", -1, "mlx5_0", "InfiniBand", 400);
        HostTopology host = read();
        assertThat(host.gpus().getFirst().numaNode()).isEmpty();
        assertThat(distance(host)).isEqualTo(PciDistance.SYS);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "N/A", "99999999999"})
    void numaNodeThatIsNoNumberIsUnknown(String text) {
        tree.file("devices/system/node/online", "0-1");
        tree.gpu(GPU, 0);
        tree.file("devices/" + GPU + "/numa_node", text);
        assertThat(read().gpus().getFirst().numaNode()).isEmpty();
    }

    @Test
    void numbersThatAreNoneAreUnknown() {
        tree.file("devices/system/node/online", "99999999999");
        tree.gpu(GPU, -1);
        tree.nic(NIC, 0, "mlx5_0", "InfiniBand", 400);
        tree.file("devices/" + NIC + "/infiniband/mlx5_0/ports/lost+found", "");
        HostTopology host = read();
        assertThat(host.gpus().getFirst().numaNode()).isEmpty();
        assertThat(host.nics()).extracting(NicPort::name).containsExactly("mlx5_0:1");
    }

    @Test
    void unknownNumaNodeIsTheOnlyOne() {
        tree.file("devices/system/node/online", "0");
        tree.gpu("pci0000:16/0000:16:01.0/0000:17:00.0", -1);
        tree.nic("pci0000:30/0000:30:01.0/0000:31:00.0", -1, "mlx5_0", "InfiniBand", 400);
        assertThat(distance(read())).isEqualTo(PciDistance.NODE);
    }

    @Test
    void numaNodeIsTakenFromTheBridgeAbove() {
        tree.file("devices/system/node/online", "0-1");
        tree.file("devices/pci0000:16/0000:16:01.0/numa_node", "1");
        tree.gpu("pci0000:16/0000:16:01.0/0000:17:00.0", -1);
        assertThat(read().gpus().getFirst().numaNode()).isEqualTo(OptionalInt.of(1));
    }

    @Test
    void nicOnCardWithOwnSwitchIsBehindTwo() {
        tree.gpu(GPU, 0);
        tree.nic(
                SWITCH + "0000:18:01.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0",
                0,
                "mlx5_0",
                "InfiniBand",
                400);
        assertThat(distance(read())).isEqualTo(PciDistance.PXB);
    }

    @Test
    void functionsOfOneCardAreNearest() {
        tree.gpu(SWITCH + "0000:18:00.0/0000:19:00.0", 0);
        tree.nic(SWITCH + "0000:18:00.0/0000:19:00.1", 0, "mlx5_0", "InfiniBand", 400);
        assertThat(distance(read())).isEqualTo(PciDistance.PIX);
    }

    @Test
    void sameNumbersInOtherDomainsAreOtherDevices() {
        tree.file("devices/system/node/online", "0-1");
        tree.gpu("pci0000:16/0000:16:01.0/0000:17:00.0", 0);
        tree.gpu("pci10000:16/10000:16:01.0/10000:17:00.0", 1);
        tree.nic("pci10000:16/10000:16:02.0/10000:18:00.0", 1, "mlx5_0", "InfiniBand", 400);
        HostTopology host = read();
        assertThat(host.gpus())
                .extracting(gpu -> gpu.distanceTo(host.nics().getFirst().device()))
                .containsExactly(PciDistance.SYS, PciDistance.PHB);
        assertThat(host.gpuIdx(PciAddress.parse("00010000:17:00.0"))).isEqualTo(1);
    }

    @Test
    void pciBelowAnotherBusIsRead() {
        // As Hyper-V shows it.
        tree.gpu("LNXSYSTM:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0", 0);
        PciDevice gpu = read().gpus().getFirst();
        assertThat(gpu.hostBridge()).isEqualTo("pci0001:00");
        assertThat(gpu.bridges()).isEmpty();
    }

    @Test
    void nvSwitchAndAudioAreNotGpus() {
        tree.gpu(GPU, 0);
        for (String kind : List.of("0x068000", "0x040300")) {
            String other = "devices/pci0000:30/0000:30:0" + kind.charAt(3) + ".0";
            tree.file(other + "/class", kind);
            tree.file(other + "/vendor", "0x10de");
        }
        tree.file("devices/pci0000:30/0000:30:1f.0/class", "0x030000");
        tree.file("devices/pci0000:30/0000:30:1f.0/vendor", "0x1a03");
        assertThat(read().gpus()).hasSize(1);
    }

    @Test
    void bondWithDownAndUnreadableLinks() {
        tree.nic(NIC, 0, "mlx5_bond_0", "Ethernet", 100);
        tree.file("devices/" + NIC + "/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "bond0");
        tree.file("class/net/bond0/bonding/mode", "802.3ad 4");
        tree.file("class/net/bond0/bonding/slaves", "eth1 eth2 eth0");
        tree.file("class/net/eth0/operstate", "up");
        tree.file("class/net/eth0/speed", "200000");
        tree.file("class/net/eth1/operstate", "down");
        tree.file("class/net/eth2/operstate", "up");
        tree.file("class/net/eth2/speed", "-1"); // not known
        NicPort nic = read().nics().getFirst();
        assertThat(nic.bond())
                .contains(new Bond("bond0", "802.3ad", List.of("eth0", "eth2"), List.of("eth1")));
        assertThat(nic.gbps()).isEqualTo(200);
        assertThat(nic.numPaths()).isEqualTo(2);
    }

    /** Places of the table that hold no address cannot be read, or are empty. */
    @Test
    void kindsOfAddresses() {
        tree.nic(NIC, 0, "mlx5_0", "Ethernet", 100);
        String types = "devices/" + NIC + "/infiniband/mlx5_0/ports/1/gid_attrs/types/";
        tree.file(types + "0", "IB/RoCE v1");
        tree.file(types + "3", "RoCE v2");
        Path sysfs = tree.finish();
        NicPort nic = HostTopology.read(sysfs).nics().getFirst();
        assertThat(HostTopology.gidTypes(sysfs, nic).subList(0, 5))
                .containsExactly("IB/RoCE v1", "", "", "RoCE v2", "");
    }

    @Test
    void activeBackupIsOneLink() {
        tree.nic(NIC, 0, "mlx5_bond_0", "Ethernet", 200);
        tree.file("class/net/bond0/bonding/mode", "active-backup 1");
        tree.file("class/net/bond0/bonding/slaves", "eth0 eth1");
        for (String slave : List.of("eth0", "eth1")) {
            tree.file("devices/" + NIC + "/net/" + slave + "/operstate", "up");
            tree.file("devices/" + NIC + "/net/" + slave + "/speed", "200000");
            tree.link("devices/" + NIC + "/net/" + slave + "/master", masterOf(slave));
            tree.link("class/net/" + slave, "../../devices/" + NIC + "/net/" + slave);
        }
        NicPort nic = read().nics().getFirst();
        assertThat(nic.bond()).isPresent();
        assertThat(nic.gbps()).isEqualTo(200);
        assertThat(nic.numPaths()).isEqualTo(1);
    }

    private static String masterOf(String slave) {
        return SysfsTree.up("devices/" + NIC + "/net/" + slave) + "class/net/bond0";
    }

    @Test
    void bondOfInterfacesWhoseNicsStaySeparateIsNone() {
        tree.nic(NIC, 0, "mlx5_0", "Ethernet", 200);
        tree.file("devices/" + NIC + "/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0");
        tree.file("class/net/bond0/bonding/mode", "802.3ad 4");
        tree.link("class/net/eth0/master", "../bond0");
        assertThat(read().nics().getFirst().bond()).isEmpty();
    }
}
