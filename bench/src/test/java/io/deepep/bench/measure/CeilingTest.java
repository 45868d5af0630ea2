package io.deepep.bench.measure;

import static io.deepep.bench.CommandLines.printed;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.run.Job;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

final class CeilingTest {
    private static final Ceiling CEILING =
            new Ceiling(
                    7424,
                    new TreeMap<>(Map.of(8, 310e9, 64, 341e9)),
                    new TreeMap<>(Map.of(8, 305e9, 64, 326e9)));

    @Test
    void directionAndNumberOfMultiprocessorsPick() {
        assertThat(CEILING.at(8, true)).isEqualTo(310e9);
        assertThat(CEILING.at(64, false)).isEqualTo(326e9);
        assertThat(CEILING.best()).isEqualTo(341e9);
    }

    @Test
    void bothDirectionsAreReported() {
        assertThat(printed(console -> BenchReport.print(console, CEILING)))
                .isEqualToIgnoringNewLines(
                        """
                        bare copy, rows of 7424 bytes, push: 8 SMs 310, 64 SMs 341 GB/s
                        bare copy, rows of 7424 bytes, pull: 8 SMs 305, 64 SMs 326 GB/s
                        """);
    }

    private static OperationRecord record(
            Double ceiling, Double share, Double sameSms, Double sameSmsShare) {
        return OperationRecord.of(
                Job.onHost(2, 2, 128, 4, 2),
                null,
                new Build("1", "abc", "jvm", "cpu"),
                new OperationRecord.Subject("dispatch", "bf16", 24),
                Samples.of(100_000, 101_000, 130_000),
                new OperationBytes(80_000_000, 40_000_000, 0, 90_000_000),
                null,
                new GpuFigures(
                        "GPU",
                        2,
                        1,
                        "CUDA 13.0",
                        20_000_000,
                        200e9,
                        ceiling,
                        share,
                        sameSms,
                        sameSmsShare,
                        140,
                        30,
                        1L << 30,
                        1.5),
                null);
    }

    /** Those of ranks on several hosts. */
    @Test
    void recordsWithoutABareCopyAreShownWithoutShares() {
        OperationRecord record = record(null, null, null, null);
        assertThat(printed(console -> BenchReport.print(console, List.of(record))))
                .containsPattern("dispatch +\\| bf16 .*\\| +200.0 \\|\\R")
                .doesNotContain("copy", "%");
    }

    @Test
    void recordsOfGpusAreShownWithTheirShares() {
        OperationRecord record = record(400e9, 0.5, 250e9, 0.8);
        assertThat(printed(console -> BenchReport.print(console, List.of(record))))
                .contains("CUDA 13.0, commit abc; a buffer takes 1024.0 MiB")
                .containsPattern(
                        "dispatch +\\| bf16 +\\| +2 \\| +24 \\| +101.0 \\| +130.0 \\| +130.0 \\| +99.5 \\| +30.0 \\| +140.0 \\|"
                                + " +396.0 \\| +200.0 \\| +80 % \\| +50 %");
    }

    /** Bytes of all ranks together, and the share of a memory copy. */
    @Test
    void recordsOfTheHostAreShownWithTheirRates() {
        OperationRecord record =
                OperationRecord.of(
                        Job.onHost(2, 2, 128, 4, 2),
                        null,
                        new Build("1", "abc", "jvm", "cpu"),
                        new OperationRecord.Subject("dispatch", "bf16", 24),
                        Samples.of(100_000),
                        new OperationBytes(3_000_000, 2_000_000, 1_000_000, 4_000_000),
                        50e9,
                        null,
                        null);
        assertThat(printed(console -> BenchReport.print(console, List.of(record))))
                .contains("memory copy 50.0 GB/s")
                .containsPattern("\\| +3.0 \\| +2.0 \\| +1.0 \\| +40.00 \\| +80 % \\|");
    }
}
