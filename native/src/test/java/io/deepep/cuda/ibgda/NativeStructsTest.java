package io.deepep.cuda.ibgda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.testkit.CommittedHeaders;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The committed headers are those that Java's definitions give. */
@Tag("checkout")
class NativeStructsTest {
    record Committed(String file, KernelHeader header) {
        @Override
        public String toString() {
            return file;
        }
    }

    static List<Committed> headers() {
        String folder = "src/main/cuda/include/deepep/";
        return List.of(
                new Committed(folder + "network_structs.cuh", NetworkStructs.HEADER),
                new Committed(folder + "status_block.cuh", StatusStruct.HEADER),
                new Committed(folder + "ibgda_structs.cuh", IbgdaStructs.HEADER),
                new Committed("src/test/cuda-nic/nic_check_structs.cuh", NicCheckStructs.HEADER));
    }

    @ParameterizedTest
    @MethodSource("headers")
    void headerIsCurrent(Committed committed) throws IOException {
        CommittedHeaders.requireCurrent(Path.of(committed.file()), committed.header().text());
    }
}
