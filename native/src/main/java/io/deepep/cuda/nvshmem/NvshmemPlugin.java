package io.deepep.cuda.nvshmem;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.posix.SysFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A library beside the host library that NVSHMEM opens: a bootstrap or a transport.
 *
 * @param file where it should be
 * @param packages system packages with the libraries that it needs
 */
record NvshmemPlugin(Path file, String packages) {
    private static final Path OWN_MAPPINGS = Path.of("/proc/self/maps");

    /**
     * Loads it, and unloads it again: NVSHMEM would pass over one that cannot be loaded with no
     * more than a warning.
     *
     * @throws DeepEpUnavailableException if it is missing or cannot be loaded
     */
    void check() {
        Path absolute = file.toAbsolutePath();
        if (!Files.exists(absolute)) {
            throw new DeepEpUnavailableException(
                    "there is no " + absolute, NvshmemInstallation.CURE);
        }
        try (Arena arena = Arena.ofConfined()) {
            SymbolLookup.libraryLookup(absolute, arena);
        } catch (IllegalArgumentException unloadable) {
            throw new DeepEpUnavailableException(
                    absolute + " cannot be loaded",
                    "install the libraries that it needs: sudo apt install " + packages);
        }
    }

    /** Whether it is loaded: NVSHMEM unloads a transport whose start has failed. */
    boolean isLoaded() {
        return isLoaded(OWN_MAPPINGS);
    }

    /** The same of a process with these mappings; true where it cannot be told. */
    boolean isLoaded(Path mappings) {
        Optional<String> path = SysFiles.target(file).map(Path::toString);
        Optional<String> all = path.flatMap(_ -> SysFiles.text(mappings));
        return all.isEmpty() || all.get().lines().anyMatch(line -> line.endsWith(path.get()));
    }
}
