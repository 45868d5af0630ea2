package io.deepep.spi.posix;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Reading files of the kernel. Whatever cannot be read counts as not there: drivers differ in what
 * they offer, containers hide parts, and reading some attributes fails while a link is down.
 */
public final class SysFiles {
    private SysFiles() {}

    /** The content without surrounding blanks, whatever in it is no UTF-8. */
    public static Optional<String> text(Path file) {
        try {
            return Optional.of(new String(Files.readAllBytes(file), UTF_8).strip());
        } catch (IOException unreadable) {
            return Optional.empty();
        }
    }

    /** The number in a file. */
    public static Optional<Integer> number(Path file) {
        return text(file).flatMap(SysFiles::number);
    }

    /** The number that a text is. */
    public static Optional<Integer> number(String text) {
        return Optional.of(text).filter(it -> it.matches("-?\\d{1,9}")).map(Integer::valueOf);
    }

    /** Names in a folder, sorted: the kernel lists them in any order. */
    public static List<String> names(Path folder) {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
        } catch (IOException unreadable) {
            return List.of();
        }
    }

    /** Where a path leads once all links are followed. */
    public static Optional<Path> target(Path link) {
        try {
            return Optional.of(link.toRealPath());
        } catch (IOException broken) {
            return Optional.empty();
        }
    }

    /** The last name of where a link leads: how sysfs names drivers and masters. */
    public static Optional<String> targetName(Path link) {
        return target(link).map(path -> path.getFileName().toString());
    }
}
