package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.kernel.KernelHeader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The committed headers are those that Java's definitions give. */
@Tag("checkout")
class IbgdaStructsTest {
    record Committed(String file, KernelHeader header) {
        @Override
        public String toString() {
            return file;
        }
    }

    static List<Committed> headers() {
        return List.of(
                new Committed(
                        "src/main/cuda/include/deepep/ibgda_structs.cuh", IbgdaStructs.HEADER),
                new Committed("src/test/cuda-nic/nic_check_structs.cuh", NicCheckStructs.HEADER));
    }

    @ParameterizedTest
    @MethodSource("headers")
    void headerIsCurrent(Committed committed) throws IOException {
        Path file = Path.of(committed.file());
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(file, committed.header().text());
        }
        assertThat(file)
                .as("write it again with -Ddeepep.writeHeaders=true")
                .hasContent(committed.header().text());
    }
}
