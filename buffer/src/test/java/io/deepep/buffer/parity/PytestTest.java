package io.deepep.buffer.parity;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
        run(python, "-m", "pytest", "-q", "-rs").requireSuccess();
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

    private static Programs.Ended run(String... command) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command).directory(FOLDER.toFile());
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        return Programs.run(builder);
    }
}
