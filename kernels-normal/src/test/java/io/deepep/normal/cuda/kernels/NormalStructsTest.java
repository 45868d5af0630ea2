package io.deepep.normal.cuda.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.error.AbiMismatchException;
import io.deepep.testkit.CommittedHeaders;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The committed headers are those that Java's definitions give, and binaries of others are refused.
 */
@Tag("checkout")
class NormalStructsTest {
    static Stream<Arguments> headers() {
        return Stream.of(
                Arguments.of("shared/normal_structs.cuh", NormalStructs.HEADER),
                Arguments.of("shared/normal_wide_structs.cuh", NormalStructs.WIDE_HEADER),
                Arguments.of("internode/internode_structs.cuh", NormalStructs.INTERNODE_HEADER),
                Arguments.of(
                        "internode/internode_wide_structs.cuh",
                        NormalStructs.INTERNODE_WIDE_HEADER));
    }

    private static Path file(String name) {
        return Path.of("src/main/cuda", name);
    }

    @ParameterizedTest
    @MethodSource("headers")
    void headerIsCurrent(String name, KernelHeader header) throws IOException {
        CommittedHeaders.requireCurrent(file(name), header.text());
    }

    static Stream<String> numbers() {
        return NormalStructs.HEADER.numbers().keySet().stream();
    }

    /** Java with another value of a number than the one the kernels were built with. */
    @ParameterizedTest
    @MethodSource("numbers")
    void anotherNumberIsRefused(String number) throws IOException {
        long hash = CommittedHeaders.hash(file("shared/normal_structs.cuh"));
        NormalStructs.HEADER.requireSame("normal_dispatch", hash);
        int value = NormalStructs.HEADER.numbers().get(number);
        KernelHeader changed = NormalStructs.HEADER.with(number, value + 1);
        assertThat(changed.text()).contains(number + " = " + (value + 1));
        assertThatThrownBy(() -> changed.requireSame("normal_dispatch", hash))
                .isInstanceOf(AbiMismatchException.class)
                .hasMessageContaining("device code normal_dispatch was built with");
    }

    /** Queues of network cards are another header's, for kernels of any number of ranks. */
    @Test
    void otherQueuesOfNetworkCardsAreRefused() {
        for (NormalStructs structs : List.of(NormalStructs.NARROW, NormalStructs.WIDE)) {
            KernelHeader header = structs.internodeHeader();
            assertThat(header.with("kIbgdaBlockBytes", 128).hash()).isNotEqualTo(header.hash());
        }
    }

    /** Kernels have no number of these names of their own. */
    @Test
    void kernelsDeclareNoneOfThemAgain() throws IOException {
        CommittedHeaders.requireDeclaredNowhereElse(
                Path.of("src/main/cuda"), NormalStructs.HEADER.numbers().keySet());
    }
}
