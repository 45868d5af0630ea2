package io.deepep.bench;

import static io.deepep.bench.docs.Checkout.ROOT;
import static java.util.stream.Collectors.counting;
import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toCollection;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.docs.Checkout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What neither the formatter nor the compiler asks of the sources. */
@Tag("checkout")
class SourcesTest {
    private static final int COLUMNS = 120;
    private static final int SIBLINGS = 25;

    /**
     * What an engine imports. Each type is named in the documents and stands for itself; divided,
     * an engine would import from several packages what it uses in one call.
     */
    private static final Path API = Path.of("deepep-api/src/main/java/io/deepep");

    /** The two protocols do the same things, and call them the same. */
    private static final Set<String> PROTOCOLS = Set.of("kernels-normal", "kernels-lowlatency");

    private static Stream<Path> sources(String endings) {
        return Checkout.files()
                .map(ROOT::relativize)
                .filter(file -> file.toString().matches("[^/]+/src/.*\\.(" + endings + ")"));
    }

    private static Stream<Path> mainTypes() {
        return sources("java")
                .filter(file -> file.toString().contains("/src/main/java/"))
                .filter(file -> !file.toString().endsWith("-info.java"));
    }

    @Test
    void deviceCodeFitsItsColumns() throws IOException {
        List<Path> files = sources("cu|cuh|cpp|h").toList();
        assertThat(files).hasSizeGreaterThan(50);
        for (Path file : files) {
            assertThat(Files.readAllLines(ROOT.resolve(file)))
                    .as("lines of %s, each of at most %d characters", file, COLUMNS)
                    .allMatch(line -> line.codePointCount(0, line.length()) <= COLUMNS);
        }
    }

    @Test
    void packagesHaveFewTypes() {
        Map<Path, Long> types = mainTypes().collect(groupingBy(Path::getParent, counting()));
        types.remove(API);
        assertThat(types).isNotEmpty();
        types.forEach(
                (folder, number) ->
                        assertThat(number)
                                .as("types in %s; divide it by what they are about", folder)
                                .isLessThanOrEqualTo(SIBLINGS));
    }

    @Test
    void namesOccurOnce() {
        Map<Path, Set<String>> modulesOf =
                mainTypes()
                        .collect(
                                groupingBy(
                                        Path::getFileName,
                                        mapping(
                                                file -> file.getName(0) + "",
                                                toCollection(TreeSet::new))));
        modulesOf.remove(
                Path.of("Routing.java")); // the group's in testkit, a rank's in the kernels
        Map<Path, Long> files = mainTypes().collect(groupingBy(Path::getFileName, counting()));
        modulesOf.forEach(
                (name, modules) ->
                        assertThat(files.get(name))
                                .as("types named %s, in %s", name, modules)
                                .isEqualTo(modules.equals(PROTOCOLS) ? 2 : 1));
    }
}
