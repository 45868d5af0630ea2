package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The emulator tells accesses that CUDA orders from those that it does not. */
@Tag("checkout")
@Timeout(60)
class EmulatedRacesTest {
    @TempDir private static Path folder;

    @BeforeAll
    static void compile() throws IOException, InterruptedException {
        assumeTrue(CudaDriver.isAvailable(), "no GPUs; see -Pemulator");
        assumeTrue(CudaDevice.of(0).name().contains("emulator"), "this is a GPU");
        Path source = Files.createDirectories(folder.resolve("cuda")).resolve("race_checks.cu");
        try (InputStream text = EmulatedRacesTest.class.getResourceAsStream("race_checks.cu")) {
            Files.copy(text, source);
        }
        ProcessBuilder build =
                new ProcessBuilder(
                        "bash",
                        "src/emulator/build_kernels.sh",
                        source.getParent().toString(),
                        folder.resolve("out").toString(),
                        folder.resolve("work").toString());
        build.environment().put("DEEPEP_EMULATOR_RACES", "1");
        Programs.run(build).requireSuccess();
    }

    @ParameterizedTest
    @CsvSource({
        "released, 1, ended",
        "fenced, 1, ended",
        "relaxed, 1, failed",
        "released_on_gpu, 0, ended",
        "released_on_gpu, 1, failed",
        "without_barrier, 1, failed",
        "copied, 1, ended",
        "copied_from_there, 1, failed",
        "after_previous, 0, ended",
        "before_previous, 0, failed"
    })
    void racesAreFound(String kernel, int gpuOfReader, String end)
            throws IOException, InterruptedException {
        String module = folder.resolve("out/race_checks.fatbin").toString();
        String output =
                Programs.run(
                                Programs.java(
                                        RaceProgram.class,
                                        Programs.SHORT_LIVED,
                                        module,
                                        kernel,
                                        gpuOfReader + ""))
                        .requireSuccess();
        assertThat(output).containsSequence(end + "\n");
        assertThat(output.contains("[cuda emulator] race at "))
                .as(output)
                .isEqualTo(end.equals("failed"));
        if (end.equals("failed")) {
            assertThat(output).contains("race_checks.cu:").contains("which nothing orders after");
        }
    }
}
