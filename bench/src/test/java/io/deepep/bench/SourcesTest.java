package io.deepep.bench;

import static io.deepep.bench.docs.Checkout.ROOT;
import static java.util.stream.Collectors.counting;
import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toList;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import io.deepep.bench.docs.Checkout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What neither the formatter nor the compiler asks of the sources. */
@Tag("checkout")
class SourcesTest {
    private static final int DEVICE_COLUMNS = 120;

    /** The formatter wraps code at 100; this bounds what it cannot wrap: messages and diagrams. */
    private static final int JAVA_COLUMNS = 145;

    private static final int FILE_LINES = 450;
    private static final int METHOD_LINES = 90;
    private static final int SIBLINGS = 25;

    /**
     * What an engine imports. Each type is named in the documents and stands for itself; divided,
     * an engine would import from several packages what it uses in one call.
     */
    private static final Path API = Path.of("deepep-api/src/main/java/io/deepep");

    /** The two protocols do the same things, and call them the same. */
    private static final Set<Path> PROTOCOLS =
            Set.of(Path.of("kernels-normal"), Path.of("kernels-lowlatency"));

    private static Stream<Path> sources(String endings) {
        return Checkout.FILES.stream()
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
            requireColumns(file, Files.readAllLines(ROOT.resolve(file)), DEVICE_COLUMNS);
        }
    }

    @Test
    void javaFitsItsLines() throws IOException {
        List<Path> files = sources("java").toList();
        assertThat(files).hasSizeGreaterThan(1000);
        for (Path file : files) {
            List<String> lines = Files.readAllLines(ROOT.resolve(file));
            assertThat(lines).as("lines of %s", file).hasSizeLessThanOrEqualTo(FILE_LINES);
            requireColumns(
                    file,
                    lines.stream()
                            .filter(line -> !line.matches("(package|import) .*|.*https?://.*"))
                            .toList(),
                    JAVA_COLUMNS);
        }
    }

    private static void requireColumns(Path file, List<String> lines, int columns) {
        assertThat(lines)
                .as("lines of %s, each of at most %d characters", file, columns)
                .allMatch(line -> line.codePointCount(0, line.length()) <= columns);
    }

    @Test
    void methodsAreShort() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            List<Path> sources = sources("java").map(ROOT::resolve).toList();
            JavacTask task =
                    (JavacTask)
                            compiler.getTask(
                                    null,
                                    files,
                                    null,
                                    List.of("-proc:none"),
                                    null,
                                    files.getJavaFileObjectsFromPaths(sources));
            MethodLines lines = new MethodLines(Trees.instance(task).getSourcePositions());
            task.parse().forEach(unit -> unit.accept(lines, unit));
            assertThat(lines.numMethods).isGreaterThan(5000);
        }
    }

    /** Looks at every method of a file. */
    private static final class MethodLines extends TreeScanner<Void, CompilationUnitTree> {
        private final SourcePositions positions;
        private int numMethods;

        MethodLines(SourcePositions positions) {
            this.positions = positions;
        }

        @Override
        public Void visitMethod(MethodTree method, CompilationUnitTree unit) {
            if (method.getBody() != null) {
                numMethods++;
                long first = lineOf(unit, positions.getStartPosition(unit, method.getBody()));
                long last = lineOf(unit, positions.getEndPosition(unit, method.getBody()));
                assertThat(last - first + 1)
                        .as("lines of %s in %s", method.getName(), unit.getSourceFile().getName())
                        .isLessThanOrEqualTo(METHOD_LINES);
            }
            return super.visitMethod(method, unit);
        }

        private static long lineOf(CompilationUnitTree unit, long position) {
            return unit.getLineMap().getLineNumber(position);
        }
    }

    /** AssertJ's need byte-buddy, which bundles leave out. */
    @Test
    void assumptionsAreJUnits() throws IOException {
        String others = "org.assertj.core.api." + "Assumptions";
        for (Path file : sources("java").toList()) {
            assertThat(Files.readString(ROOT.resolve(file))).as("%s", file).doesNotContain(others);
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
        Map<Path, List<Path>> modulesOf =
                mainTypes()
                        .collect(
                                groupingBy(
                                        Path::getFileName,
                                        mapping(file -> file.getName(0), toList())));
        modulesOf.remove(
                Path.of("Routing.java")); // the group's in testkit, a rank's in the kernels
        modulesOf.forEach(
                (name, modules) ->
                        assertThat(modules)
                                .as("modules with a type named %s", name)
                                .hasSize(Set.copyOf(modules).equals(PROTOCOLS) ? 2 : 1));
    }
}
