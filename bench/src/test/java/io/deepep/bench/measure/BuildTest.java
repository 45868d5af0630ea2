package io.deepep.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Records name the commit that was built, wherever the command is started. */
class BuildTest {
    /** Prints what a record says of this process. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            System.out.print(Build.current().commit());
        }
    }

    @Test
    void anotherRepositoryAroundTheProcessChangesNothing(@TempDir Path folder) throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/git")), "git");
        outputOf(folder, "git", "init", "-q");
        outputOf(
                folder,
                "git",
                "-c",
                "user.name=nobody",
                "-c",
                "user.email=nobody@example.org",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "another");
        String other = outputOf(folder, "git", "rev-parse", "--short=12", "HEAD").strip();
        String stamped =
                outputOf(
                        folder,
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        absolute(System.getProperty("java.class.path")),
                        Program.class.getName());
        assertThat(other).matches("[0-9a-f]{12}");
        assertThat(stamped)
                .isNotEqualTo(other)
                .isEqualTo(Build.current().commit())
                .matches("unknown|[0-9a-f]{12}(-dirty)?");
    }

    private static String absolute(String classPath) {
        return String.join(
                ":",
                java.util.Arrays.stream(classPath.split(":"))
                        .map(entry -> Path.of(entry).toAbsolutePath().toString())
                        .toList());
    }

    private static String outputOf(Path folder, String... command) throws Exception {
        Process process =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(String.join(" ", command)).isZero();
        return output;
    }
}
