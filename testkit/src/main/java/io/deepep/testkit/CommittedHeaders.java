package io.deepep.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Headers of device code that are written from Java's definitions, and committed. */
public final class CommittedHeaders {
    private static final Pattern HASH = Pattern.compile("uint64_t \\w+ = 0x([0-9a-f]+);");

    private CommittedHeaders() {}

    /** Requires that one is as the definitions give it. */
    public static void requireCurrent(Path header, String text) throws IOException {
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(header, text);
        }
        assertThat(header).as("write it again with -Ddeepep.writeHeaders=true").hasContent(text);
    }

    /** The hash of the definitions that binaries built with one carry. */
    public static long hash(Path header) throws IOException {
        Matcher built = HASH.matcher(Files.readString(header));
        assertThat(built.find()).as(header.toString()).isTrue();
        return Long.parseUnsignedLong(built.group(1), 16);
    }

    /** Requires that no other file of a folder has a number of one of these names of its own. */
    public static void requireDeclaredNowhereElse(Path folder, Collection<String> numbers)
            throws IOException {
        Pattern declaration =
                Pattern.compile("constexpr [^;()]*\\b(" + String.join("|", numbers) + ") =");
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                if (!file.toString().endsWith("_structs.cuh")) {
                    assertThat(Files.readString(file))
                            .as(file.toString())
                            .doesNotContainPattern(declaration);
                }
            }
        }
    }
}
