package io.deepep.cuda.driver;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;

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
        Programs.compile(FakeLibraries.class, "fakes/" + source + ".c", folder, library);
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

    /** An {@code int} of a library. */
    public static MemorySegment variable(Path library, String name) {
        return SymbolLookup.libraryLookup(library, Arena.global())
                .findOrThrow(name)
                .reinterpret(Integer.BYTES);
    }
}
