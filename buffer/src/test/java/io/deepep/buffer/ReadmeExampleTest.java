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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's Java example compiles and does what it says. */
class ReadmeExampleTest {
    private static final Pattern JAVA_BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    @Test
    void exampleCompilesAndRuns(@TempDir Path folder) throws Exception {
        Matcher block = JAVA_BLOCK.matcher(Files.readString(Path.of("..", "README.md")));
        assertThat(block.find()).as("README.md has a Java block").isTrue();
        Path source = Files.writeString(folder.resolve("Example.java"), block.group(1));
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
        // Expert t and t + 3 of 8 lie on two of the four ranks, and the experts are the identity.
        assertThat(runMain(folder)).contains("token 0 came back as 2.0");
    }

    private static String runMain(Path folder) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            loader.loadClass("Example")
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) new String[0]);
        } finally {
            System.setOut(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}
