package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.measure.BenchReport;
import io.deepep.cuda.topology.PciDistance;
import io.deepep.doctor.DoctorReport;
import io.deepep.doctor.Finding;
import io.deepep.doctor.GpuFacts;
import io.deepep.doctor.HostFacts;
import io.deepep.doctor.NicFacts;
import io.deepep.doctor.Way;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A report of two GPUs that share a bond, on paper. */
class DoctorPrinterTest {
    private static DoctorReport report(String peerProblem, Finding... findings) {
        return new DoctorReport(
                new HostFacts("h20", "Linux 6.8.0", "a CPU", "a JVM", "1 (abc)"),
                List.of(gpu(0, "NODE, the nearest; shared with gpu1"), gpu(1, "PIX, the nearest")),
                List.of(
                        new DoctorReport.Nic(
                                "mlx5_bond_0:1",
                                "0000:74:00.0",
                                "RoCE",
                                400,
                                "mlx5",
                                1,
                                "bond0 802.3ad",
                                2,
                                List.of(0, 1))),
                List.of(
                        new NicFacts(
                                "mlx5_bond_0",
                                "",
                                "28.43",
                                262144,
                                32768,
                                true,
                                List.of(),
                                List.of(
                                        new NicFacts.Port(
                                                "mlx5_bond_0:1", true, 4096, List.of("fe80::1"))),
                                new NicFacts.Trial("cuda:0", "", "", "", "", "not mapped")),
                        new NicFacts(
                                "mlx5_9",
                                "Permission denied",
                                "",
                                0,
                                0,
                                false,
                                List.of(),
                                List.of(),
                                new NicFacts.Trial("", "not opened", "", "", "", ""))),
                List.of(),
                List.of(List.of(PciDistance.NODE), List.of(PciDistance.PIX)),
                new GpuFacts(
                        "",
                        "",
                        "13.0",
                        List.of(cudaGpu(0), cudaGpu(1)),
                        List.of(List.of(true, true), List.of(true, true)),
                        List.of(List.of(0, 18), List.of(18, 0)),
                        List.of(List.of(2000.0, 370.0), List.of(370.0, 2000.0)),
                        peerProblem),
                List.of(findings),
                List.of(new Way("several nodes over IBRC", true, "the CPU drives the NICs")));
    }

    private static DoctorReport.Gpu gpu(int index, String reason) {
        return new DoctorReport.Gpu(
                index,
                "0000:" + (index + 1) + "3:00.0",
                "NVIDIA H20",
                0,
                List.of("mlx5_bond_0:1"),
                "mlx5_bond_0:1",
                reason);
    }

    private static GpuFacts.Gpu cudaGpu(int ordinal) {
        return new GpuFacts.Gpu(
                ordinal, "NVIDIA H20", "0000:13:00.0", 9, 0, 78, 96L << 30, true, true, "");
    }

    private static String printed(DoctorReport report) {
        return CommandLines.printed(console -> new DoctorPrinter(console, report).print());
    }

    @Test
    void tablesShowWhatLiesBetweenAndWhoServesWhom() {
        String text = printed(report(""));
        assertThat(text.lines())
                .anyMatch(l -> l.matches("\\| gpu1 \\| +PIX \\|"))
                .anyMatch(
                        l ->
                                l.matches(
                                        "\\| gpu0 \\| 0000:13:00.0 \\| NVIDIA H20 \\| +0 \\| mlx5_bond_0:1 +"
                                                + "\\| NODE, the nearest; shared with gpu1 \\|"))
                .anyMatch(
                        l ->
                                l.matches(
                                        "\\| mlx5_bond_0:1 \\| 0000:74:00.0 \\| RoCE \\| +400 \\| +1 "
                                                + "\\| bond0 802.3ad \\| gpu0, gpu1 \\|"))
                .anyMatch(
                        l ->
                                l.matches(
                                        "\\| mlx5_bond_0 \\| 28.43 +\\| +262144 \\| +32768 \\| yes +"
                                                + "\\| mlx5_bond_0:1 active, MTU 4096, addresses 1 \\| cuda:0 +"
                                                + "\\| yes +\\| yes +\\| yes +\\| no +\\|"))
                .anyMatch(
                        l ->
                                l.matches(
                                        "\\| mlx5_9 +\\| - +\\|( +\\? \\|){2} \\? +\\| +\\| - +(\\| \\? +){4}\\|"))
                .anyMatch(l -> l.matches("\\| cuda:1 \\| +18 \\| +0 \\|"))
                .anyMatch(l -> l.matches("\\| cuda:0 \\| +2000 \\| +370 \\|"))
                .noneMatch(l -> l.contains("What would help"));
    }

    @Test
    void whatWouldHelpComesLast() {
        Finding missing =
                new Finding(
                        "GPU", "CUDA driver", Finding.Status.MISSING, "none", "install the driver");
        String text = printed(report("cuMemAlloc_v2 failed", missing));
        assertThat(text)
                .contains("copies between GPUs were not measured: cuMemAlloc_v2 failed")
                .endsWith("  GPU CUDA driver: none\n      install the driver\n");
    }

    @Test
    void jsonHasAllOfIt() throws Exception {
        JsonNode json = new ObjectMapper().readTree(BenchReport.json(report("")));
        assertThat(json.properties().stream().map(Map.Entry::getKey))
                .containsExactly(
                        "host",
                        "gpus",
                        "nics",
                        "cards",
                        "excludedNics",
                        "pciDistances",
                        "cuda",
                        "findings",
                        "modes");
        assertThat(json.at("/cards/0/trial/doorbells").asText()).isEqualTo("not mapped");
        assertThat(json.at("/gpus/1/hcaList").asText()).isEqualTo("mlx5_bond_0:1");
        assertThat(json.at("/nics/0/servesGpus").toString()).isEqualTo("[0,1]");
        assertThat(json.at("/pciDistances/1/0").asText()).isEqualTo("PIX");
        assertThat(json.at("/cuda/peerGigabytesPerSecond/0/1").asDouble()).isEqualTo(370);
        assertThat(json.at("/modes/0/name").asText()).isEqualTo("several nodes over IBRC");
        assertThat(json.at("/modes/0/possible").asBoolean()).isTrue();
    }
}
