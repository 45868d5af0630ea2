package io.deepep.bench.cuda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.testkit.CommittedHeaders;
import java.io.IOException;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The committed headers are those that Java's definitions give. */
@Tag("checkout")
class BenchStructsTest {
    static Stream<Arguments> headers() {
        return Stream.of(
                Arguments.of(Path.of("src/main/cuda/bench_structs.cuh"), BenchStructs.HEADER),
                Arguments.of(Path.of("src/test/cuda/soak_structs.cuh"), SoakStructs.HEADER));
    }

    @ParameterizedTest
    @MethodSource("headers")
    void headerIsCurrent(Path file, KernelHeader header) throws IOException {
        CommittedHeaders.requireCurrent(file, header.text());
    }
}
