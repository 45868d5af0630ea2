package io.deepep.buffer.parity;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The tables of docs/parity.md name classes, methods and tests that exist, and leave out no method
 * of {@link Buffer}. In a row, the second cell names what is ours, the last one tests.
 */
@Tag("checkout")
class ParityTableTest {
    private static final Path ROOT = Path.of("..");
    private static final Pattern CODE = Pattern.compile("`([^`]+)`");
    private static final Pattern NAME = Pattern.compile("([A-Z]\\w+)(?:\\.(\\w+))*");
    private static final int OURS = 1;

    private static List<List<String>> rows;
    private static List<Path> tests;

    @BeforeAll
    static void read() throws IOException {
        rows =
                Files.readAllLines(ROOT.resolve("docs/parity.md")).stream()
                        .filter(line -> line.startsWith("| `"))
                        .map(line -> Arrays.stream(line.split("\\|")).map(String::strip).toList())
                        .map(cells -> cells.subList(1, cells.size()))
                        .toList();
        try (Stream<Path> files = Files.walk(ROOT.resolve("python-parity/tests"))) {
            tests = new ArrayList<>(files.toList());
        }
        for (String module :
                new String[] {"testkit/src/main", "buffer/src/test", "deepep-api/src/test"}) {
            try (Stream<Path> files = Files.walk(ROOT.resolve(module))) {
                tests.addAll(files.toList());
            }
        }
    }

    @Test
    void namesThatAreOursExist() throws Exception {
        assertThat(rows).hasSizeGreaterThan(30);
        for (List<String> row : rows) {
            for (String name : codes(row.get(OURS))) {
                assertThat(exists(name)).as(name + " of the row " + row.getFirst()).isTrue();
            }
        }
    }

    @Test
    void testsExist() throws IOException {
        for (List<String> row : rows) {
            List<String> named = codes(row.getLast());
            assertThat(named.isEmpty())
                    .as("a test, or — where there is nothing to test: " + row)
                    .isEqualTo(row.getLast().equals("—"));
            for (String test : named) {
                assertThat(testExists(test)).as(test + " of the row " + row.getFirst()).isTrue();
            }
        }
    }

    @Test
    void everyMethodOfTheBufferIsThere() {
        Set<String> named = new TreeSet<>();
        rows.forEach(row -> named.addAll(codes(row.get(OURS))));
        for (Class<?> type : List.of(Buffer.class, Buffer.Builder.class)) {
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers()) && !method.isSynthetic()) {
                    String simple = type == Buffer.class ? "Buffer" : "Buffer.Builder";
                    assertThat(named).contains(simple + "." + method.getName());
                }
            }
        }
    }

    private static List<String> codes(String cell) {
        return CODE.matcher(cell).results().map(found -> found.group(1)).toList();
    }

    /**
     * Whether {@code Type}, {@code Type.Nested}, or one of these with a method or constant exists.
     */
    private static boolean exists(String name) {
        assertThat(name).matches(NAME);
        Class<?> type = type(name.replace('.', '$'));
        if (type != null) {
            return true;
        }
        int dot = name.lastIndexOf('.');
        Class<?> owner = dot < 0 ? null : type(name.substring(0, dot).replace('.', '$'));
        String member = name.substring(dot + 1);
        return owner != null
                && (Arrays.stream(owner.getMethods()).anyMatch(m -> m.getName().equals(member))
                        || Arrays.stream(owner.getFields())
                                .anyMatch(f -> f.getName().equals(member)));
    }

    private static Class<?> type(String name) {
        for (String prefix : List.of("io.deepep.", "io.deepep.error.")) {
            try {
                return Class.forName(prefix + name, false, Buffer.class.getClassLoader());
            } catch (ClassNotFoundException notThere) {
                // Maybe in the next package.
            }
        }
        return null;
    }

    /**
     * Whether there is such a {@code TestClass}, {@code TestClass.method} or {@code test_file.py}.
     */
    private static boolean testExists(String name) throws IOException {
        boolean python = name.endsWith(".py");
        Matcher java = NAME.matcher(name);
        if (!python && !java.matches()) {
            return false;
        }
        String file = python ? name : java.group(1) + ".java";
        for (Path test : tests) {
            if (test.getFileName().toString().equals(file)) {
                return python
                        || java.group(2) == null
                        || Files.readString(test).contains("void " + java.group(2) + "(");
            }
        }
        return false;
    }
}
