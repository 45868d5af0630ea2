package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Device;
import io.deepep.GroupLimits;
import io.deepep.LowLatencyFormat;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.error.AbiMismatchException;
import io.deepep.lowlatency.LowLatencyFormats;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What kernels and Java share is defined in Java alone, and a binary built otherwise is refused.
 */
@Tag("checkout")
class LowLatencyStructsTest {
    private static final Path CUDA = Path.of("src/main/cuda");
    private static final Map<Path, KernelHeader> HEADERS =
            Map.of(
                    CUDA.resolve("lowlatency_structs.cuh"),
                    LowLatencyStructs.ONE_WORD.header,
                    CUDA.resolve("lowlatency_wide_structs.cuh"),
                    LowLatencyStructs.WIDE.header);
    private static final Pattern HASH =
            Pattern.compile("deepep_lowlatency_structs = 0x([0-9a-f]+);");

    static Stream<Path> generated() {
        return HEADERS.keySet().stream();
    }

    @ParameterizedTest
    @MethodSource("generated")
    void headerIsCurrent(Path generated) throws IOException {
        KernelHeader header = HEADERS.get(generated);
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(generated, header.text());
        }
        assertThat(generated)
                .as("write it again with -Ddeepep.writeHeaders=true")
                .hasContent(header.text());
    }

    /** A group of a size, and the numbers that tell its kernels from the others'. */
    @Test
    void eachSizeHasItsOwn() {
        assertThat(LowLatencyStructs.of(32).maxRanks).isEqualTo(32);
        assertThat(LowLatencyStructs.of(33).maxRanks)
                .isEqualTo(GroupLimits.lowLatency(Device.Kind.CUDA).maxRanks());
        long one = LowLatencyStructs.ONE_WORD.header.hash();
        assertThatThrownBy(() -> LowLatencyStructs.WIDE.header.requireSame("lowlatency", one))
                .isInstanceOf(AbiMismatchException.class);
    }

    @Test
    void formatsHaveOneNumber() {
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            assertThat(LowLatencyFormats.Code.valueOf(format.name()).value())
                    .isEqualTo(format.ordinal());
        }
    }

    static Stream<Arguments> numbers() {
        return HEADERS.keySet().stream()
                .flatMap(path -> names(path).map(number -> Arguments.of(path, number)));
    }

    private static Stream<String> names(Path generated) {
        return HEADERS.get(generated).numbers().keySet().stream();
    }

    /** Java with another value of a number than the one the kernels were built with. */
    @ParameterizedTest
    @MethodSource("numbers")
    void anotherNumberIsRefused(Path generated, String number) throws IOException {
        KernelHeader header = HEADERS.get(generated);
        Matcher built = HASH.matcher(Files.readString(generated));
        assertThat(built.find()).isTrue();
        long hash = Long.parseUnsignedLong(built.group(1), 16);
        header.requireSame("lowlatency_dispatch", hash);
        int value = header.numbers().get(number);
        KernelHeader changed = header.with(number, value + 1);
        assertThat(changed.text()).contains(number + " = " + (value + 1));
        assertThatThrownBy(() -> changed.requireSame("lowlatency_dispatch", hash))
                .isInstanceOf(AbiMismatchException.class)
                .hasMessageContaining("device code lowlatency_dispatch was built with");
    }

    /** Queues of network cards are another header's. */
    @ParameterizedTest
    @MethodSource("generated")
    void otherQueuesOfNetworkCardsAreRefused(Path generated) {
        KernelHeader header = HEADERS.get(generated);
        assertThat(header.with("kIbgdaBlockBytes", 128).hash()).isNotEqualTo(header.hash());
    }

    /** Kernels have no number of these names of their own. */
    @Test
    void kernelsDeclareNoneOfThemAgain() throws IOException {
        try (Stream<Path> files = Files.walk(CUDA)) {
            for (Path path : files.filter(Files::isRegularFile).toList()) {
                if (!HEADERS.containsKey(path)) {
                    String text = Files.readString(path);
                    assertThat(HEADERS.keySet().stream().flatMap(LowLatencyStructsTest::names))
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
