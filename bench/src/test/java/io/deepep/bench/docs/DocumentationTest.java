package io.deepep.bench.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.CommandLines;
import io.deepep.bench.Outcome;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Links lead somewhere, commands exist with the options shown, Java compiles. Pages whose Java
 * needs more than this module's class path are compiled where it is.
 */
@Tag("checkout")
class DocumentationTest {
    private static final List<MarkdownPage> PAGES = MarkdownPage.all();
    private static final Pattern WEB = Pattern.compile("https?://.*");

    /** A line of a shell block that starts the command, up to a comment, a pipe or what follows. */
    private static final Pattern COMMAND =
            Pattern.compile(
                    "(?:.*(?:&&|--) )?(?:\\./|bin/|deepep-bundle/bin/)deepep +([^#|>&';)]*).*");

    private static final Pattern CLASS = Pattern.compile("public class (\\w+)");

    static List<MarkdownPage> pages() {
        return PAGES;
    }

    static List<String> commands() {
        List<String> found = new ArrayList<>();
        for (MarkdownPage page : PAGES) {
            for (MarkdownPage.Block block : page.blocks()) {
                for (String line : block.text().replace("\\\n", " ").split("\n", -1)) {
                    Matcher command = COMMAND.matcher(line);
                    if (command.matches()) {
                        found.add(command.group(1).strip());
                    }
                }
            }
        }
        return found.stream().distinct().toList();
    }

    /** Java of all pages but those about engines, which need engines to compile. */
    static Stream<MarkdownPage.Block> java() {
        return PAGES.stream()
                .filter(page -> !page.path().endsWith("docs/guides/engines.md"))
                .filter(page -> !page.path().endsWith("docs/guides/from-python.md"))
                .flatMap(page -> page.blocks().stream())
                .filter(block -> block.language().equals("java"));
    }

    @Test
    void pagesWereFound() {
        assertThat(PAGES).hasSizeGreaterThan(10);
        assertThat(commands()).hasSizeGreaterThan(10);
    }

    @ParameterizedTest
    @MethodSource("pages")
    void linksLeadSomewhere(MarkdownPage page) {
        List<String> broken = new ArrayList<>();
        for (String link : page.links()) {
            if (!WEB.matcher(link).matches() && !exists(page, link)) {
                broken.add(link);
            }
        }
        assertThat(broken).isEmpty();
    }

    private static boolean exists(MarkdownPage from, String link) {
        int hash = link.indexOf('#');
        String file = hash < 0 ? link : link.substring(0, hash);
        Path target = file.isEmpty() ? from.path() : from.path().resolveSibling(file).normalize();
        if (hash < 0 || !Files.exists(target)) {
            return Files.exists(target);
        }
        return PAGES.stream()
                .filter(page -> page.path().equals(target))
                .anyMatch(page -> page.anchors().contains(link.substring(hash + 1)));
    }

    @ParameterizedTest
    @MethodSource("commands")
    void commandsExistAsWritten(String command) {
        CommandLines.parse(command.isEmpty() ? new String[0] : command.split(" +"));
    }

    /** Those that are quick and need nothing are really run. */
    @ParameterizedTest
    @MethodSource("quickCommands")
    void quickCommandsRun(String command) {
        Outcome outcome = CommandLines.runLine(command);
        assertThat(outcome.exitCode()).as(outcome.err()).isZero();
        assertThat(outcome.out()).isNotBlank();
    }

    static List<String> quickCommands() {
        List<String> quick =
                List.of("--version", "doctor", "plan --nodes 4", "plan compare", "plan start");
        assertThat(commands()).as("shown somewhere").containsAll(quick);
        return quick;
    }

    @ParameterizedTest
    @MethodSource("java")
    void javaCompiles(MarkdownPage.Block block, @TempDir Path folder) throws Exception {
        Matcher name = CLASS.matcher(block.text());
        assertThat(name.find()).as("a whole class, not a piece of one: %s", block.text()).isTrue();
        Path source = Files.writeString(folder.resolve(name.group(1) + ".java"), block.text());
        ByteArrayOutputStream diagnostics = new ByteArrayOutputStream();
        String[] options = {
            "-cp", System.getProperty("java.class.path"), "-d", folder.toString(), source.toString()
        };
        int status =
                ToolProvider.getSystemJavaCompiler().run(null, diagnostics, diagnostics, options);
        assertThat(status)
                .as(Arrays.toString(options) + diagnostics.toString(StandardCharsets.UTF_8))
                .isZero();
    }
}
