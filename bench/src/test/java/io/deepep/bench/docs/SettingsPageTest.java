package io.deepep.bench.docs;

import static io.deepep.bench.docs.Checkout.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** {@code docs/settings.md} names what the sources read, all of it and nothing else. */
@Tag("checkout")
class SettingsPageTest {

    /** A variable; the names of C++ macros, which have arguments, are left out. */
    private static final Pattern VARIABLE =
            Pattern.compile("(?<!#undef )\\bDEEPEP_[A-Z]+(?:_[A-Z]+)*\\b(?!\\()");

    /** A property as Java reads it: behind one of the getters, or as a constant. */
    private static final Pattern PROPERTY_READ =
            Pattern.compile(
                    "(?:get(?:Property|Integer|Long|Boolean)\\(|(?:PROPERTY|REQUIRE|SELECT) =)\\s*\"(deepep\\.[\\w.]+)\"");

    private static final Pattern PROPERTY_SHOWN = Pattern.compile("`(deepep\\.[\\w.]+)`");

    @Test
    void namesEveryVariable() throws IOException {
        assertThat(found(VARIABLE, page())).isEqualTo(read(VARIABLE, SettingsPageTest::isSource));
    }

    @Test
    void namesEveryProperty() throws IOException {
        Set<String> read = read(PROPERTY_READ, file -> file.toString().endsWith(".java"));
        assertThat(found(PROPERTY_SHOWN, page())).isEqualTo(read);
    }

    private static String page() throws IOException {
        return Files.readString(ROOT.resolve("docs/settings.md"));
    }

    private static boolean isSource(Path file) {
        String name = file.getFileName().toString();
        boolean script = !name.contains(".") || name.endsWith(".sh");
        return script || name.endsWith(".java") || name.endsWith(".cpp") || name.endsWith(".py");
    }

    private static Set<String> read(Pattern pattern, Predicate<Path> sources) throws IOException {
        Set<String> names = new TreeSet<>();
        for (Path file : Checkout.FILES.stream().filter(sources).toList()) {
            if (!file.endsWith("SettingsPageTest.java")) {
                names.addAll(found(pattern, Files.readString(file)));
            }
        }
        return names;
    }

    private static Set<String> found(Pattern pattern, String text) {
        Set<String> names = new TreeSet<>();
        Matcher matcher = pattern.matcher(text);
        while (matcher.find()) {
            names.add(matcher.group(matcher.groupCount()));
        }
        return names;
    }
}
