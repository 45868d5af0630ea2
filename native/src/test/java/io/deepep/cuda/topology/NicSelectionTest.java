package io.deepep.cuda.topology;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.sysfs.SysfsTree;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which ports GPUs share, where a host has several kinds. */
class NicSelectionTest {
    @TempDir private Path folder;
    private SysfsTree tree;

    @BeforeEach
    void createGpu() {
        tree = new SysfsTree(folder).gpu("pci0000:16/0000:16:01.0/0000:17:00.0", 0);
    }

    private void nic(int number, String linkLayer, int gbps) {
        String path = "pci0000:30/0000:30:0" + number + ".0/0000:3" + number + ":00.0";
        tree.nic(path, 0, "mlx5_" + number, linkLayer, gbps);
    }

    private NicMapping mapping() {
        return NicMapping.of(HostTopology.read(tree.finish()), NicOverride.none());
    }

    private static List<String> used(NicMapping mapping) {
        return mapping.nics().stream().map(NicPort::hca).toList();
    }

    @Test
    void theFasterNetworkOfTwoIsUsed() {
        nic(1, "InfiniBand", 200);
        nic(2, "Ethernet", 200);
        nic(3, "Ethernet", 200);
        NicMapping mapping = mapping();
        assertThat(used(mapping)).containsExactly("mlx5_2", "mlx5_3");
        assertThat(mapping.excluded())
                .containsExactly(
                        new ExcludedNic(
                                "mlx5_1:1",
                                "InfiniBand, while most of this host's speed is RoCE (400 of 600 Gb/s), and they cannot"
                                        + " reach each other"));
    }

    @Test
    void infiniBandIsUsedWhereBothAreAsFast() {
        nic(1, "Ethernet", 400);
        nic(2, "InfiniBand", 400);
        assertThat(used(mapping())).containsExactly("mlx5_2");
    }

    @Test
    void slowPortsAreLeftOut() {
        nic(1, "Ethernet", 400);
        nic(2, "Ethernet", 200);
        nic(3, "Ethernet", 100);
        NicMapping mapping = mapping();
        assertThat(used(mapping)).containsExactly("mlx5_1", "mlx5_2");
        assertThat(mapping.excluded())
                .containsExactly(
                        new ExcludedNic(
                                "mlx5_3:1",
                                "100 Gb/s is less than half of the fastest port's 400 Gb/s"));
    }

    @Test
    void otherDriversAreLeftOut() {
        nic(1, "Ethernet", 400);
        String other = "devices/pci0000:30/0000:30:08.0/0000:38:00.0";
        tree.link("class/infiniband/bnxt_re0", "../../" + other + "/infiniband/bnxt_re0");
        tree.link(other + "/infiniband/bnxt_re0/device", "../../../0000:38:00.0");
        tree.link(other + "/driver", SysfsTree.up(other) + "bus/pci/drivers/bnxt_en");
        String port = other + "/infiniband/bnxt_re0/ports/1";
        tree.file(port + "/link_layer", "Ethernet");
        tree.file(port + "/state", "4: ACTIVE");
        tree.file(port + "/rate", "400 Gb/sec (4X NDR)");
        NicMapping mapping = mapping();
        assertThat(used(mapping)).containsExactly("mlx5_1");
        assertThat(mapping.excluded())
                .containsExactly(new ExcludedNic("bnxt_re0:1", "driver bnxt_en is not mlx5_core"));
    }

    @Test
    void speedsThatAreNotToldDoNotCount() {
        nic(1, "Ethernet", 0);
        nic(2, "Ethernet", 0);
        assertThat(used(mapping())).containsExactly("mlx5_1", "mlx5_2");
    }

    /** The far one would take it first, and the near one had no second port of its own distance. */
    @Test
    void aNearGpuTakesItsSecondPortBeforeOneThatIsFarFromAll() {
        String slot = "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:";
        tree.gpu(slot + "00.0/0000:43:00.0", 0);
        tree.nic("pci0000:20/0000:20:01.0/0000:21:00.0", 0, "mlx5_0", "InfiniBand", 400);
        tree.nic(slot + "01.0/0000:44:00.0", 0, "mlx5_1", "InfiniBand", 400);
        tree.nic(slot + "02.0/0000:45:00.0", 0, "mlx5_2", "InfiniBand", 400);
        tree.nic("pci0000:50/0000:50:01.0/0000:51:00.0", 0, "mlx5_3", "InfiniBand", 400);
        assertThat(mapping().assignments().stream().map(NicAssignment::hcaList))
                .containsExactly("mlx5_0:1,mlx5_3:1", "mlx5_1:1,mlx5_2:1");
    }
}
