package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** The Java of README and of the guide to a layer compiles and does what the pages say. */
@Tag("checkout")
@Isolated("it takes standard output")
class ReadmeExampleTest {
    private static final Pattern JAVA_BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern DIFFERENCE =
            Pattern.compile("^(normal|low-latency) mode: (.*)$", Pattern.MULTILINE);

    @TempDir private Path folder;

    /** Every token has two experts with weight 0.5 each, and the experts are the identity. */
    @Test
    void tokensOfTheReadmeComeBackAsTheyWere() throws Exception {
        assertThat(outputOf(Path.of("..", "README.md"), "Example"))
                .isEqualToIgnoringNewLines("token 0 came back as 1.0");
    }

    /** Outputs are up to 2 or so: FP8 has 4 significant bits, BF16 has 8. */
    @Test
    void theLayerOfTheGuideComputesWhatOneRankComputes() throws Exception {
        String output = outputOf(Path.of("..", "docs", "guides", "moe-layer.md"), "MoeLayer");
        assertThat(DIFFERENCE.matcher(output).results())
                .as(output)
                .hasSize(8)
                .allMatch(
                        line ->
                                Float.parseFloat(line.group(2))
                                        < (line.group(1).equals("normal") ? 0.2f : 0.02f));
    }

    private String outputOf(Path page, String mainClass) throws Exception {
        Matcher block = JAVA_BLOCK.matcher(Files.readString(page));
        assertThat(block.find()).as(page + " has a Java block").isTrue();
        Path source = Files.writeString(folder.resolve(mainClass + ".java"), block.group(1));
        ByteArrayOutputStream diagnostics = new ByteArrayOutputStream();
        int status =
                ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                diagnostics,
                                diagnostics,
                                "-cp",
                                System.getProperty("java.class.path"),
                                "-d",
                                folder.toString(),
                                source.toString());
        assertThat(status).as(diagnostics.toString(StandardCharsets.UTF_8)).isZero();
        return runMain(mainClass);
    }

    private String runMain(String mainClass) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            loader.loadClass(mainClass)
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) new String[0]);
        } finally {
            System.setOut(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}
