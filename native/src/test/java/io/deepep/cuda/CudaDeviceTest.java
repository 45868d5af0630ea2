package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.error.NativeCallException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a process may use of a GPU. */
class CudaDeviceTest {
    @ParameterizedTest
    @CsvSource(
            nullValues = "unset",
            value = {
                "unset, true, 100",
                "25, true, 25",
                "' 12.5 ', true, 13",
                "25, false, 100",
                "100, true, 100",
                "0, true, 100",
                "-3, true, 100",
                "half, true, 100",
                "'', true, 100"
            })
    void shareOfMps(String variable, boolean isUnderMps, int percent) {
        assertThat(CudaDevice.mpsPercentage(variable, () -> isUnderMps)).isEqualTo(percent);
    }

    /** The driver does not know the attribute. */
    @Test
    void oldDriver() {
        assertThat(
                        CudaDevice.mpsPercentage(
                                "25",
                                () -> {
                                    throw new NativeCallException(
                                            "cuDeviceGetAttribute", 1, "INVALID", "cuda:0", false);
                                }))
                .isEqualTo(100);
    }
}
