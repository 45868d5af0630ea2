package io.deepep.doctor;

import io.deepep.spi.posix.SysFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The files and environment variables of a machine.
 *
 * @param root {@code /}, or another folder in tests
 * @param environment the environment variables of the process
 */
public record Machine(Path root, Map<String, String> environment) {
    private static final List<String> LIBRARY_FOLDERS =
            List.of(
                    "usr/lib/x86_64-linux-gnu",
                    "usr/lib/aarch64-linux-gnu",
                    "usr/lib64",
                    "usr/local/lib",
                    "usr/lib",
                    "lib/x86_64-linux-gnu",
                    "lib/aarch64-linux-gnu",
                    "lib64");

    /** This machine. */
    public static Machine current() {
        return new Machine(Path.of("/"), System.getenv());
    }

    /** A path without the leading slash, below the root. */
    Path path(String path) {
        return root.resolve(path);
    }

    boolean has(String path) {
        return Files.exists(path(path));
    }

    /** A file's content; empty if it cannot be read. */
    Optional<String> text(String path) {
        return SysFiles.text(path(path));
    }

    /** What stands behind a name at the beginning of a file's line; empty if there is none. */
    Optional<String> value(String path, String name) {
        return text(path).stream()
                .flatMap(String::lines)
                .filter(line -> line.startsWith(name))
                .map(line -> line.substring(name.length()).strip())
                .findFirst();
    }

    /** Names in a folder, sorted; none if it cannot be read. */
    List<String> names(String folder) {
        return SysFiles.names(path(folder));
    }

    /** Whether the dynamic linker would find a library. */
    boolean hasLibrary(String file) {
        Stream<Path> named =
                Stream.of(environment.getOrDefault("LD_LIBRARY_PATH", "").split(":"))
                        .filter(folder -> !folder.isBlank())
                        .map(Path::of);
        return Stream.concat(named, LIBRARY_FOLDERS.stream().map(this::path))
                        .anyMatch(folder -> Files.exists(folder.resolve(file)))
                || isCached(file);
    }

    /** The cache, which is not all text, also has what is in the folders of /etc/ld.so.conf. */
    private boolean isCached(String library) {
        try {
            return Files.readString(path("etc/ld.so.cache"), StandardCharsets.ISO_8859_1)
                    .contains("/" + library + "\0");
        } catch (IOException noCache) {
            return false;
        }
    }
}
