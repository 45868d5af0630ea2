package io.deepep.cuda.topology;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Limits as libibverbs tells them: of the card in software, which says what it has. */
class NicLimitsTest {
    private static final Path BUILD = Path.of("src/softcard/build.sh");
    private static final Path HEADERS = Path.of("/usr/include/infiniband/mlx5dv.h");

    @Test
    void withoutTheLibraryThereAreNoDevices() {
        assertThat(NicLimits.read("libnothing-of-this-name.so.1")).isEmpty();
    }

    @Test
    void limitsAreThoseOfTheCard(@TempDir Path folder) throws Exception {
        Assumptions.assumeTrue(Files.exists(HEADERS), "no libibverbs-dev: " + HEADERS);
        Path libraries = Path.of("target/softcard").toAbsolutePath();
        run(new ProcessBuilder("bash", BUILD.toString(), libraries.toString()));
        // In a process of its own, which the library's variables are set for.
        ProcessBuilder program =
                new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin/java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Program.class.getName(),
                        libraries.resolve("libibverbs.so.1").toString());
        program.environment().put("DEEPEP_CARD_DEVICES", "2");
        program.environment().put("DEEPEP_CARD_FOLDER", folder.toString());
        assertThat(run(program).lines())
                .endsWith(
                        "mlx5_0 software 8192 queue pairs of 32768",
                        "mlx5_1 software 8192 queue pairs of 32768");
    }

    private static String run(ProcessBuilder builder) throws Exception {
        Process process = builder.redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }

    /** Prints what a library's devices say. */
    static final class Program {
        private Program() {}

        public static void main(String[] arguments) {
            List<NicLimits> nics = NicLimits.read(arguments[0]);
            for (NicLimits nic : nics) {
                System.out.println(
                        nic.hca()
                                + " "
                                + nic.firmware()
                                + " "
                                + nic.maxQueuePairs()
                                + " queue pairs of "
                                + nic.maxQueuePairEntries());
            }
        }
    }
}
