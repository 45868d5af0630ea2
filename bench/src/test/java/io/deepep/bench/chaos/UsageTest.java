package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which mappings of a process are shared memory. */
class UsageTest {
    @ParameterizedTest
    @CsvSource({
        "7f00-7f01 rw-s 00000000 00:01 77 /memfd:deepep (deleted), true",
        "7f00-7f01 rw-s 00000000 00:19 77 /dev/shm/nvshmem, true",
        "7f00-7f01 r-xp 00000000 00:01 77 /memfd:code (deleted), false",
        "7f00-7f01 rw-s 00000000 00:06 77 /dev/nvidia0, false",
        "7f00-7f01 rw-p 00000000 00:00 0, false"
    })
    void codeIsNone(String mapping, boolean isShared) {
        assertThat(Usage.isSharedMemory(mapping)).isEqualTo(isShared);
    }
}
