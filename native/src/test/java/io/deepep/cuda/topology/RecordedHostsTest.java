package io.deepep.cuda.topology;

import static io.deepep.cuda.topology.PciDistance.NODE;
import static io.deepep.cuda.topology.PciDistance.PHB;
import static io.deepep.cuda.topology.PciDistance.PIX;
import static io.deepep.cuda.topology.PciDistance.PXB;
import static io.deepep.cuda.topology.PciDistance.SYS;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.sysfs.SysfsTree;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole hosts: what is read, the matrix, and the mapping. */
class RecordedHostsTest {
    @TempDir private Path folder;

    private HostTopology read(String recording) {
        return HostTopology.read(SysfsTree.build(recording, folder));
    }

    private static List<PciDistance> distances(HostTopology host, int nicIdx) {
        PciDevice nic = host.nics().get(nicIdx).device();
        return host.gpus().stream().map(gpu -> gpu.distanceTo(nic)).toList();
    }

    private static List<String> hcaLists(NicMapping mapping) {
        return mapping.assignments().stream().map(NicAssignment::hcaList).toList();
    }

    private static Map<String, String> reasons(List<ExcludedNic> excluded) {
        return excluded.stream().collect(Collectors.toMap(ExcludedNic::name, ExcludedNic::reason));
    }

    @Test
    void h20WithFourBonds() {
        HostTopology host = read("h20-8gpu-4bond.txt");
        assertThat(host.gpus()).hasSize(8);
        assertThat(host.gpus().subList(0, 4))
                .allMatch(gpu -> gpu.numaNode().equals(OptionalInt.of(0)));
        assertThat(host.nics())
                .extracting(NicPort::name)
                .containsExactly(
                        "mlx5_bond_0:1", "mlx5_bond_1:1", "mlx5_bond_2:1", "mlx5_bond_3:1");
        assertThat(host.nics())
                .allSatisfy(
                        nic -> {
                            assertThat(nic.linkLayer()).isEqualTo(LinkLayer.ROCE);
                            assertThat(nic.driver()).isEqualTo("mlx5_core");
                            assertThat(nic.gbps()).isEqualTo(400);
                            assertThat(nic.numPaths()).isEqualTo(2);
                        });
        assertThat(host.nics().getFirst().bond())
                .contains(new Bond("bond0", "802.3ad", List.of("eth0", "eth1"), List.of()));

        assertThat(distances(host, 0)).containsExactly(NODE, PIX, NODE, NODE, SYS, SYS, SYS, SYS);
        assertThat(distances(host, 1)).containsExactly(NODE, NODE, NODE, PIX, SYS, SYS, SYS, SYS);
        assertThat(distances(host, 2)).containsExactly(SYS, SYS, SYS, SYS, PIX, NODE, NODE, NODE);
        assertThat(distances(host, 3)).containsExactly(SYS, SYS, SYS, SYS, NODE, NODE, PIX, NODE);

        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        assertThat(hcaLists(mapping))
                .containsExactly(
                        "mlx5_bond_0:1",
                        "mlx5_bond_0:1",
                        "mlx5_bond_1:1",
                        "mlx5_bond_1:1",
                        "mlx5_bond_2:1",
                        "mlx5_bond_2:1",
                        "mlx5_bond_3:1",
                        "mlx5_bond_3:1");
        assertThat(mapping.assignments().get(0).reason())
                .isEqualTo("NODE, the nearest; shared with gpu1");
        assertThat(mapping.assignments().get(1).reason())
                .isEqualTo("PIX, the nearest; shared with gpu0");
        assertThat(mapping.excluded()).isEmpty();
    }

    @Test
    void eightGpusWithEightNicsAndStorage() {
        HostTopology host = read("h100-8gpu-8nic.txt");
        assertThat(host.gpus()).hasSize(8);
        assertThat(distances(host, 0)).containsExactly(PXB, NODE, NODE, NODE, SYS, SYS, SYS, SYS);
        assertThat(reasons(host.excluded()))
                .containsOnly(
                        Map.entry("mlx5_9:1", "port is DOWN (physical state Disabled)"),
                        Map.entry(
                                "mlx5_10",
                                "virtual function of 0000:46:00.0, which is used itself"),
                        Map.entry(
                                "mlx5_11",
                                "virtual function of 0000:46:00.0, which is used itself"));

        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        assertThat(hcaLists(mapping))
                .containsExactly(
                        "mlx5_4:1",
                        "mlx5_5:1",
                        "mlx5_6:1",
                        "mlx5_7:1",
                        "mlx5_0:1",
                        "mlx5_1:1",
                        "mlx5_2:1",
                        "mlx5_3:1");
        assertThat(mapping.assignments())
                .extracting(NicAssignment::reason)
                .containsOnly("PXB, the nearest");
        assertThat(reasons(mapping.excluded()).get("mlx5_8:1"))
                .isEqualTo(
                        "RoCE, while most of this host's speed is InfiniBand (3200 of 3300 Gb/s), and they cannot reach each other");
    }

    @Test
    void eightGpusWithOneNic() {
        HostTopology host = read("8gpu-1nic.txt");
        assertThat(distances(host, 0)).containsExactly(PIX, PIX, NODE, NODE, SYS, SYS, SYS, SYS);
        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        assertThat(hcaLists(mapping)).containsOnly("mlx5_0:1");
        assertThat(mapping.of(host.gpus().get(7).address()).reason())
                .isEqualTo(
                        "SYS, the nearest; shared with gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6");
    }

    @Test
    void guestWithOneGpu() {
        HostTopology host = read("h200-1gpu-guest.txt");
        assertThat(host.gpus())
                .containsExactly(
                        new PciDevice(
                                PciAddress.parse("0000:00:06.0"),
                                "pci0000:00",
                                List.of(),
                                OptionalInt.of(0)));
        assertThat(host.nics()).isEmpty();
        assertThat(host.excluded()).isEmpty();
    }

    @Test
    void noNic() {
        SysfsTree tree = new SysfsTree(folder);
        for (int i = 0; i < 8; i++) {
            tree.gpu("pci0000:00/0000:00:0" + i + ".0", -1);
        }
        HostTopology host = HostTopology.read(tree.finish());
        assertThat(host.gpus().get(0).distanceTo(host.gpus().get(1))).isEqualTo(PHB);
        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        assertThat(mapping.assignments()).hasSize(8);
        assertThat(hcaLists(mapping)).containsOnly("");
        assertThat(mapping.assignments())
                .extracting(NicAssignment::reason)
                .containsOnly("this host has no NIC to use");
    }

    @Test
    void nothingAtAll() {
        HostTopology host = HostTopology.read(folder.resolve("missing"));
        assertThat(host).isEqualTo(new HostTopology(List.of(), List.of(), List.of()));
        assertThat(NicMapping.of(host, NicOverride.none()).assignments()).isEmpty();
    }
}
