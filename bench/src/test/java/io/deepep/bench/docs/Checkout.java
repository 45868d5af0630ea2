package io.deepep.bench.docs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The checkout that is tested. */
public final class Checkout {
    public static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

    /** Its files in order, without hidden ones and what builds have made. */
    public static final List<Path> FILES = files(ROOT).toList();

    private Checkout() {}

    private static Stream<Path> files(Path folder) {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.sorted().toList().stream()
                    .filter(
                            entry ->
                                    !entry.getFileName()
                                            .toString()
                                            .matches("\\..*|target|node_modules"))
                    .flatMap(entry -> Files.isDirectory(entry) ? files(entry) : Stream.of(entry));
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
