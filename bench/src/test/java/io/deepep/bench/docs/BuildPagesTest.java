package io.deepep.bench.docs;

import static io.deepep.bench.docs.Checkout.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What the pages say about builds is true of this one. */
@Tag("checkout")
class BuildPagesTest {

    /** Maven runs no test and reports success where a pattern matches nothing. */
    private static final Pattern SELECTION =
            Pattern.compile("mvnw [^`\\n]*-pl ([\\w-]+) [^`\\n]*-Dtest='([^']+)'");

    private static final Pattern POM_VERSION =
            Pattern.compile("<artifactId>deepep-parent</artifactId>\\s*<version>([^<]+)<");

    @Test
    void testsThatPagesSelectExist() throws IOException {
        List<String> missing = new ArrayList<>();
        int found = 0;
        for (MarkdownPage page : MarkdownPage.all()) {
            for (MatchResult match :
                    SELECTION.matcher(Files.readString(page.path())).results().toList()) {
                found++;
                if (!isTest(match.group(1), match.group(2))) {
                    missing.add(page.path() + ": " + match.group());
                }
            }
        }
        assertThat(missing).isEmpty();
        assertThat(found).isPositive();
    }

    private static boolean isTest(String module, String pattern) throws IOException {
        PathMatcher matcher = FileSystems.getDefault().getPathMatcher("glob:" + pattern + ".java");
        // The conformance suites of testkit run in buffer.
        String suites = module.equals("buffer") ? "testkit/src/main/java" : module;
        try (Stream<Path> own = Files.walk(ROOT.resolve(module).resolve("src/test/java"));
                Stream<Path> scanned = Files.walk(ROOT.resolve(suites))) {
            return Stream.concat(own, scanned).map(Path::getFileName).anyMatch(matcher::matches);
        }
    }

    @Test
    void versionsAreThoseOfTheBuild() throws IOException {
        String pom = Files.readString(ROOT.resolve("pom.xml"));
        String version = group(POM_VERSION, pom);
        String libtorch = property(pom, "libtorch.version");
        String pages =
                Files.readString(ROOT.resolve("docs/guides/project.md"))
                        + Files.readString(ROOT.resolve("README.md"));
        assertThat(versions(pages, "io\\.deepep", "deepep[\\w-]*")).containsOnly(version);
        assertThat(versions(pages, "ai\\.djl\\.pytorch", "pytorch-native-cpu"))
                .containsOnly(libtorch);
        assertThat(versions(pages, "ai\\.djl\\.pytorch", "pytorch-jni"))
                .containsOnly(libtorch + "-" + property(pom, "djl.version"));
        assertThat(pages).contains("`org.jcuda:jcuda:" + property(pom, "jcuda.version") + "`");
        assertThat(Files.readString(ROOT.resolve("bom/pom.xml")))
                .as("the BOM has no parent to take it from")
                .contains("<version>" + version + "</version>");
    }

    /** Of every module but the bench, and under every classifier. */
    @Test
    void theBomHasEveryArtifact() throws IOException {
        Pattern artifact = Pattern.compile("</parent>\\s*<artifactId>([^<]+)<");
        Pattern classifier = Pattern.compile("<classifier>(linux-[^<]+)<");
        List<String> published = new ArrayList<>();
        for (MatchResult module :
                Pattern.compile("<module>([^<]+)<")
                        .matcher(Files.readString(ROOT.resolve("pom.xml")))
                        .results()
                        .toList()) {
            if (!List.of("bom", "bench").contains(module.group(1))) {
                String pom = Files.readString(ROOT.resolve(module.group(1)).resolve("pom.xml"));
                published.add("<artifactId>" + group(artifact, pom) + "<");
            }
        }
        classifier
                .matcher(Files.readString(ROOT.resolve("library/pom.xml")))
                .results()
                .forEach(match -> published.add(match.group()));
        assertThat(published).contains("<artifactId>deepep<").hasSizeGreaterThan(15);
        assertThat(Files.readString(ROOT.resolve("bom/pom.xml"))).contains(published);
    }

    /** As Maven and as Gradle write them. */
    private static List<String> versions(String pages, String group, String artifact) {
        Pattern maven =
                Pattern.compile(
                        "<groupId>"
                                + group
                                + "</groupId>\\s*<artifactId>"
                                + artifact
                                + "</artifactId>\\s*<version>([^<]+)<");
        Pattern gradle = Pattern.compile("'" + group + ":" + artifact + ":([^:']+)[:']");
        return Stream.of(maven, gradle)
                .flatMap(pattern -> pattern.matcher(pages).results())
                .map(match -> match.group(1))
                .toList();
    }

    private static String property(String pom, String name) {
        return group(Pattern.compile("<" + name + ">([^<]+)<"), pom);
    }

    private static String group(Pattern pattern, String text) {
        return pattern.matcher(text)
                .results()
                .map(match -> match.group(1))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + pattern));
    }
}
