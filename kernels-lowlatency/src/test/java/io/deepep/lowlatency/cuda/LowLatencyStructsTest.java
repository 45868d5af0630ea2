package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Device;
import io.deepep.GroupLimits;
import io.deepep.LowLatencyFormat;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.error.AbiMismatchException;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.testkit.CommittedHeaders;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
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

    static Stream<Path> generated() {
        return HEADERS.keySet().stream();
    }

    @ParameterizedTest
    @MethodSource("generated")
    void headerIsCurrent(Path generated) throws IOException {
        CommittedHeaders.requireCurrent(generated, HEADERS.get(generated).text());
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
        return HEADERS.entrySet().stream()
                .flatMap(
                        entry ->
                                entry.getValue().numbers().keySet().stream()
                                        .map(number -> Arguments.of(entry.getKey(), number)));
    }

    /** Java with another value of a number than the one the kernels were built with. */
    @ParameterizedTest
    @MethodSource("numbers")
    void anotherNumberIsRefused(Path generated, String number) throws IOException {
        KernelHeader header = HEADERS.get(generated);
        long hash = CommittedHeaders.hash(generated);
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
        for (KernelHeader header : HEADERS.values()) {
            CommittedHeaders.requireDeclaredNowhereElse(CUDA, header.numbers().keySet());
        }
    }
}
