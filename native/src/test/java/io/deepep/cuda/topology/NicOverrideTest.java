package io.deepep.cuda.topology;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.testkit.sysfs.SysfsTree;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The user's mapping, on the host with eight GPUs, eight InfiniBand NICs and two for storage. */
class NicOverrideTest {
    private static HostTopology host;

    @BeforeAll
    static void read(@TempDir Path folder) {
        host = HostTopology.read(SysfsTree.build("h100-8gpu-8nic.txt", folder));
    }

    private static List<String> hcaLists(String override) {
        return NicMapping.of(host, NicOverride.parse(override)).assignments().stream()
                .map(NicAssignment::hcaList)
                .toList();
    }

    @Test
    void everyGpuGetsWhatTheUserSays() {
        assertThat(hcaLists("gpu0=mlx5_0+mlx5_1:1, 0000:2B:00.0 = mlx5_2 ,*=mlx5_3"))
                .containsExactly(
                        "mlx5_0:1,mlx5_1:1",
                        "mlx5_2:1",
                        "mlx5_3:1",
                        "mlx5_3:1",
                        "mlx5_3:1",
                        "mlx5_3:1",
                        "mlx5_3:1",
                        "mlx5_3:1");
    }

    @Test
    void gpusThatAreNotNamedAreMappedAroundTheOthers() {
        // gpu0 takes gpu1's nearest; gpu1 takes gpu0's, which is as far as all others of its
        // socket.
        assertThat(hcaLists("gpu0=mlx5_5"))
                .containsExactly(
                        "mlx5_5:1",
                        "mlx5_4:1",
                        "mlx5_6:1",
                        "mlx5_7:1",
                        "mlx5_0:1",
                        "mlx5_1:1",
                        "mlx5_2:1",
                        "mlx5_3:1");
    }

    @Test
    void userMayOverloadPortsAndNameThoseThatSelectionLeavesOut() {
        NicMapping mapping = NicMapping.of(host, NicOverride.parse("gpu0=mlx5_8,gpu1=mlx5_8"));
        assertThat(mapping.assignments().get(0).hcaList()).isEqualTo("mlx5_8:1");
        assertThat(mapping.assignments().get(1).reason()).isEqualTo("given by the user");
        assertThat(mapping.assignments()).allMatch(a -> !a.nics().isEmpty());
        assertThat(mapping.excluded()).noneMatch(nic -> nic.name().equals("mlx5_8:1"));
    }

    @Test
    void oneGpuMayTakeAllPortsAndTheOthersStillHaveTheirs() {
        List<String> automatic = hcaLists("");
        String all = IntStream.range(0, 8).mapToObj(i -> "mlx5_" + i).collect(joining("+"));
        assertThat(hcaLists("gpu0=" + all).subList(1, 8)).isEqualTo(automatic.subList(1, 8));
    }

    @Test
    void gpusAreFoundByTheirAddresses() {
        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        assertThat(mapping.of(PciAddress.parse("0000:2b:00.0")))
                .isEqualTo(mapping.assignments().get(1));
        assertThatThrownBy(() -> mapping.of(PciAddress.parse("0000:99:00.0")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "there is no GPU at 0000:99:00.0 in sysfs; this host has 0000:13:00.0, 0000:2b:00.0,");
    }

    @Test
    void whatIsWrittenIsReadBack() {
        String text = "gpu0=mlx5_0+mlx5_1:2,0000:ab:00.0=rocep24s0,*=mlx5_bond_1";
        assertThat(NicOverride.parse(text)).hasToString(text);
        assertThat(NicOverride.parse(NicOverride.parse(text).toString()))
                .isEqualTo(NicOverride.parse(text));
        assertThat(NicOverride.parse(" ")).isEqualTo(NicOverride.none());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "mlx5_0 | \"mlx5_0\" has no =; write GPU=HCA[:PORT], as in gpu0=mlx5_0:1",
                "gpu0=mlx5_0, | \"\" has no =; write GPU=HCA[:PORT], as in gpu0=mlx5_0:1",
                "cuda:0=mlx5_0 | \"cuda:0\" is not a GPU; write gpu0, 0000:1b:00.0 or *",
                "gpu0= | \"\" is not HCA or HCA:PORT, as mlx5_0 or mlx5_0:1",
                "gpu0=mlx5_0:x | \"mlx5_0:x\" is not HCA or HCA:PORT, as mlx5_0 or mlx5_0:1",
                "gpu0=^mlx5_0 | \"^mlx5_0\" is not HCA or HCA:PORT, as mlx5_0 or mlx5_0:1",
                "gpu0=mlx5_0,gpu0=mlx5_1 | gpu0 is given twice; join its NICs by +",
            })
    void wrongTextIsRefused(String text, String complaint) {
        assertThatThrownBy(() -> NicOverride.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("NIC mapping \"" + text + "\": " + complaint);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "gpu8=mlx5_0 | gpu8 is not a GPU of this host, which has 0000:13:00.0, 0000:2b:00.0,",
                "0000:99:00.0=mlx5_0 | 0000:99:00.0 is not a GPU of this host, which has 0000:13:00.0,",
                "gpu0=mlx5_0,0000:13:00.0=mlx5_0 | 0000:13:00.0 is given twice, by number and by address",
                "gpu0=mlx5_0+mlx5_0 | gpu0 is given mlx5_0:1 twice",
                "gpu0=mlx5_0+mlx5_0:1 | gpu0 is given mlx5_0:1 twice",
                "gpu0=mlx5_42 | mlx5_42 is not a NIC of this host, which has mlx5_4:1, mlx5_5:1,",
                "gpu0=mlx5_0:2 | mlx5_0:2 is not a NIC of this host, which has mlx5_4:1,",
                "gpu0=mlx5_9 | mlx5_9 cannot be used: port is DOWN (physical state Disabled)",
                "*=mlx5_9:1 | mlx5_9:1 cannot be used: port is DOWN (physical state Disabled)",
                "gpu0=mlx5_10 | mlx5_10 cannot be used: virtual function of 0000:46:00.0, which is used itself",
            })
    void whatTheHostHasNotIsRefused(String text, String complaint) {
        NicOverride override = NicOverride.parse(text);
        assertThatThrownBy(() -> NicMapping.of(host, override))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("NIC mapping \"" + text + "\": " + complaint);
    }
}
