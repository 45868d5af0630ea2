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
        "released, 1,",
        "fenced, 1,",
        "relaxed, 1, nothing",
        "given_back, 1,",
        "released_on_gpu, 0,",
        "released_on_gpu, 1, nothing",
        "without_barrier, 1, nothing",
        "stored, 1,",
        "stored_but_not_there, 1, nothing",
        "stored_without_fence, 0, no fence between the proxies",
        "stage_written_again, 0, nothing",
        "loaded, 1,",
        "loaded_after_writers_fence, 1,",
        "loaded_without_fence, 1, no fence between the proxies",
        "loaded_but_not_there, 0, nothing",
        "after_previous, 0,",
        "before_previous, 0, nothing"
    })
    void racesAreFound(String kernel, int gpuOfReader, String orders)
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
        if (orders == null) {
            assertThat(output).contains("ended\n").doesNotContain("race at ");
        } else {
            assertThat(output)
                    .contains("failed\n", "[cuda emulator] race at ", "race_checks.cu:")
                    .contains("which " + orders + " orders after");
        }
    }
}
