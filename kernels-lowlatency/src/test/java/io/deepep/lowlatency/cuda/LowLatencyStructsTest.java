package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.error.AbiMismatchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What kernels and Java share is defined in Java alone, and a binary built otherwise is refused.
 */
class LowLatencyStructsTest {
    private static final Path CUDA = Path.of("src/main/cuda");
    private static final Path GENERATED = CUDA.resolve("lowlatency_structs.cuh");
    private static final KernelHeader HEADER = LowLatencyStructs.HEADER;
    private static final Pattern HASH =
            Pattern.compile("deepep_lowlatency_structs = 0x([0-9a-f]+);");

    @Test
    void headerIsCurrent() throws IOException {
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(GENERATED, HEADER.text());
        }
        assertThat(GENERATED)
                .as("write it again with -Ddeepep.writeHeaders=true")
                .hasContent(HEADER.text());
    }

    static Stream<String> numbers() {
        return HEADER.numbers().keySet().stream();
    }

    /** Java with another value of a number than the one the kernels were built with. */
    @ParameterizedTest
    @MethodSource("numbers")
    void anotherNumberIsRefused(String number) throws IOException {
        Matcher built = HASH.matcher(Files.readString(GENERATED));
        assertThat(built.find()).isTrue();
        long hash = Long.parseUnsignedLong(built.group(1), 16);
        HEADER.requireSame("lowlatency_dispatch", hash);
        int value = HEADER.numbers().get(number);
        KernelHeader changed = HEADER.with(number, value + 1);
        assertThat(changed.text()).contains(number + " = " + (value + 1));
        assertThatThrownBy(() -> changed.requireSame("lowlatency_dispatch", hash))
                .isInstanceOf(AbiMismatchException.class)
                .hasMessageContaining("device code lowlatency_dispatch was built with");
    }

    /** Kernels have no number of these names of their own. */
    @Test
    void kernelsDeclareNoneOfThemAgain() throws IOException {
        try (Stream<Path> files = Files.walk(CUDA)) {
            for (Path path : files.filter(Files::isRegularFile).toList()) {
                if (!path.equals(GENERATED)) {
                    String text = Files.readString(path);
                    assertThat(numbers())
                            .as(path.toString())
                            .noneMatch(number -> declares(text, number));
                }
            }
        }
    }

    private static boolean declares(String text, String number) {
        return Pattern.compile("constexpr [^;()]*\\b" + number + " =").matcher(text).find();
    }
}
