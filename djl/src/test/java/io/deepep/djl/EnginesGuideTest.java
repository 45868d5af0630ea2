package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.djl.decoder.Golden;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Java of the guides for engines compiles, and does what it says where it needs no GPU. */
class EnginesGuideTest {
    private static final Path GUIDES = Path.of("..", "docs", "guides");
    private static final Path ENGINES = GUIDES.resolve("engines.md");
    private static final Path PYTHON = GUIDES.resolve("from-python.md");
    private static final Pattern JAVA_BLOCK =
            Pattern.compile("```java\n(.*?public class (\\w+).*?)```", Pattern.DOTALL);

    @TempDir static Path folder;
    private static final Map<String, Path> SOURCES = new LinkedHashMap<>();

    @BeforeAll
    static void readGuides() throws IOException {
        Matcher block = JAVA_BLOCK.matcher(Files.readString(ENGINES) + Files.readString(PYTHON));
        while (block.find()) {
            SOURCES.put(
                    block.group(2),
                    Files.writeString(folder.resolve(block.group(2) + ".java"), block.group(1)));
        }
        compile();
    }

    private static void compile() {
        String classPath = System.getProperty("java.class.path");
        String[] arguments =
                Stream.concat(
                                Stream.of("-cp", classPath, "-d", folder.toString()),
                                SOURCES.values().stream().map(Path::toString))
                        .toArray(String[]::new);
        ByteArrayOutputStream diagnostics = new ByteArrayOutputStream();
        int status =
                ToolProvider.getSystemJavaCompiler().run(null, diagnostics, diagnostics, arguments);
        assertThat(status).as(diagnostics.toString(StandardCharsets.UTF_8)).isZero();
    }

    @Test
    void everyBlockIsAClass() throws IOException {
        assertThat(SOURCES.keySet())
                .containsExactly(
                        "GenerateTokens",
                        "DjlLayer",
                        "LoadLayer",
                        "CapturedStep",
                        "JCudaRank",
                        "DecodeLoop",
                        "Opening",
                        "Prefill",
                        "Decode",
                        "Graphs")
                .hasSize(numBlocks(ENGINES) + numBlocks(PYTHON));
    }

    private static int numBlocks(Path guide) throws IOException {
        return Files.readString(guide).split("```java", -1).length - 1;
    }

    @Test
    void layerRunsOnFourRanks() throws Exception {
        assertThat(runMain("DjlLayer").lines())
                .contains(
                        "rank 0 has experts 0 to 3, y is (10, 256)",
                        "rank 3 has experts 12 to 15, y is (13, 256)")
                .hasSize(4);
    }

    @Test
    void modelRunsOnFourRanks() throws Exception {
        assertThat(runMain("GenerateTokens", Golden.folder("mixtral").toString()).strip())
                .isEqualTo("20 new tokens");
    }

    @Test
    void decodeLoopRuns() throws Exception {
        // Two experts double the token, each with half its weight.
        assertThat(runMain("DecodeLoop").strip()).isEqualTo("token 0 came back as 2.0");
    }

    private static String runMain(String name, String... arguments) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            loader.loadClass(name)
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
        } finally {
            System.setOut(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}
