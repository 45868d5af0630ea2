package io.deepep.cuda.driver;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Assumptions;

/** Builds shared libraries that stand in for those a machine without GPU lacks. */
public final class FakeLibraries {
    private FakeLibraries() {}

    /**
     * Compiles a source of the fakes' folder; skips the test where there is no compiler.
     *
     * @param folder for the library
     */
    public static Path compile(String source, Path folder) {
        Path library = folder.resolve(source + ".so");
        try (InputStream in = FakeLibraries.class.getResourceAsStream("fakes/" + source + ".c")) {
            Path copy = folder.resolve(source + ".c");
            Files.write(copy, Objects.requireNonNull(in, source).readAllBytes());
            Programs.run(
                            "gcc",
                            "-shared",
                            "-fPIC",
                            "-Wall",
                            "-Wextra",
                            "-Werror",
                            "-o",
                            library.toString(),
                            copy.toString(),
                            "-lpthread")
                    .requireSuccess();
        } catch (IOException noCompiler) {
            Assumptions.abort(
                    "there is no gcc to build " + source + ": " + noCompiler.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
        return library;
    }

    /** A copy, which the dynamic linker takes for another library with variables of its own. */
    public static Path copy(Path library, Path target) {
        try {
            Files.createDirectories(target.getParent());
            return Files.copy(library, target);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
