package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The oldest driver that is accepted has all functions, as CUDA's own header dates them. */
@Tag("checkout")
class DriverVersionTest {
    private static final Pattern DATED = Pattern.compile("\\*PFN_(cu\\w+?)_v(\\d{4,5})\\)");
    private static final Pattern BOUND = Pattern.compile("\"(cu[A-Z]\\w+?)(?:_v(\\d))?\"");

    @Test
    void theOldestDriverHasAllFunctions() throws IOException {
        Path header = toolkit().resolve("include/cudaTypedefs.h");
        assumeTrue(Files.exists(header), header + " does not exist: there is no CUDA toolkit");
        Map<String, SortedSet<Integer>> versions = new HashMap<>();
        DATED.matcher(Files.readString(header))
                .results()
                .forEach(
                        dated ->
                                versions.computeIfAbsent(dated.group(1), _ -> new TreeSet<>())
                                        .add(Integer.parseInt(dated.group(2))));
        List<MatchResult> bound = bound();
        assertThat(bound).hasSizeGreaterThan(80);
        assertThat(bound.stream().map(function -> since(function, versions)))
                .contains(CudaDriver.MIN_VERSION)
                .allSatisfy(since -> assertThat(since).isLessThanOrEqualTo(CudaDriver.MIN_VERSION));
    }

    /** {@code cuX_v2} is the second one, and {@code cuX} the first. */
    private static int since(MatchResult function, Map<String, SortedSet<Integer>> versions) {
        int number = function.group(2) == null ? 1 : Integer.parseInt(function.group(2));
        SortedSet<Integer> dated = versions.get(function.group(1));
        assertThat(dated).as(function.group()).isNotNull();
        return List.copyOf(dated).get(Math.min(number, dated.size()) - 1);
    }

    private static List<MatchResult> bound() throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("src/main/java"))) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .map(DriverVersionTest::read)
                    .flatMap(source -> BOUND.matcher(source).results())
                    .toList();
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path toolkit() {
        String home = System.getenv("CUDA_HOME");
        return Path.of(home == null ? "/usr/local/cuda" : home);
    }
}
