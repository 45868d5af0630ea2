package io.deepep.buffer.parity;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Runs the suite of {@code python-parity}, which reads the vectors that Java wrote, where there is
 * a Python with PyTorch; {@code -Ddeepep.python} names one that must have it.
 */
@Tag("checkout")
class PytestTest {
    private static final String PYTHON_PROPERTY = "deepep.python";
    private static final List<String> USUAL = List.of("python3", "/usr/bin/python3");
    private static final Path FOLDER = Path.of("..", "python-parity");

    @Test
    void suiteOfTheReference() throws Exception {
        Assumptions.assumeTrue(Files.isDirectory(FOLDER), "no source tree here");
        String python = python();
        Assumptions.assumeTrue(
                python != null,
                () ->
                        "none of "
                                + USUAL
                                + " has torch, numpy and pytest; on Debian: apt-get install"
                                + " python3-torch python3-pytest, elsewhere name one with -D"
                                + PYTHON_PROPERTY);
        Output run = run(python, "-m", "pytest", "-q", "-rs");
        assertThat(run.status()).as(run.text()).isZero();
    }

    /** The Python to use, or null if no usual one will do. */
    private static String python() throws IOException, InterruptedException {
        String named = System.getProperty(PYTHON_PROPERTY);
        if (named != null) {
            return named;
        }
        for (String python : USUAL) {
            try {
                if (run(python, "-c", "import torch, numpy, pytest").status() == 0) {
                    return python;
                }
            } catch (IOException notInstalled) {
                // The next one may do.
            }
        }
        return null;
    }

    /** What a program printed, and its exit status. */
    private record Output(int status, String text) {}

    private static Output run(String... command) throws IOException, InterruptedException {
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(FOLDER.toFile()).redirectErrorStream(true);
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        Process process = builder.start();
        try {
            process.getOutputStream().close();
            String text =
                    new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            process.waitFor(1, TimeUnit.MINUTES); // it has closed its output
            return new Output(process.exitValue(), text);
        } finally {
            process.destroyForcibly();
        }
    }
}
