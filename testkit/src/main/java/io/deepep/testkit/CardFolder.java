package io.deepep.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Where cards in software find their faults and tell what they have done: see {@code
 * native/src/softcard}.
 *
 * @param path of the folder
 */
public record CardFolder(Path path) {
    /** Cards look at their file of faults so often. */
    private static final long LOOK_MILLIS = 60;

    /** That of this process; empty if it has no card in software. */
    public static Optional<CardFolder> ofProcess() {
        return Optional.ofNullable(System.getenv("DEEPEP_CARD_FOLDER"))
                .map(folder -> new CardFolder(Path.of(folder)));
    }

    /** Faults from now on; none if empty. */
    public void faults(String text) {
        try {
            Files.createDirectories(path);
            Files.writeString(path.resolve("faults"), text + "\n");
            Thread.sleep(LOOK_MILLIS);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** What cards have last told: lines with this beginning, of {@code counters-N}. */
    public List<String> told(String beginning) {
        List<String> lines = new ArrayList<>();
        try (Stream<Path> files = Files.list(path)) {
            for (Path file : files.toList()) {
                if (file.getFileName().toString().matches("counters-\\d+")) {
                    lines.addAll(Files.readAllLines(file));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return lines.stream().filter(line -> line.startsWith(beginning)).toList();
    }

    /** Bytes that each port has sent, as {@code mlx5_0:1}. */
    public Map<String, Long> bytesByPort() {
        Map<String, Long> bytes = new TreeMap<>();
        for (String line : told("port ")) {
            bytes.merge(line.split(" ", 3)[1], number(line, "bytes"), Long::sum);
        }
        return bytes;
    }

    /** A number of a line. */
    public static long number(String line, String name) {
        Matcher found = Pattern.compile("\\b" + name + "=(\\d+)").matcher(line);
        if (!found.find()) {
            throw new AssertionError("no " + name + " in " + line);
        }
        return Long.parseLong(found.group(1));
    }
}
