package io.deepep.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CuErrorTest {
    @ParameterizedTest
    @CsvSource({
        "0, CUDA_SUCCESS",
        "2, CUDA_ERROR_OUT_OF_MEMORY",
        "700, CUDA_ERROR_ILLEGAL_ADDRESS",
        "719, CUDA_ERROR_LAUNCH_FAILED"
    })
    void knowsNamesWithoutDriver(int code, String name) {
        assertThat(CuError.name(code)).isEqualTo(name);
    }

    @Test
    void unknownCodeKeepsItsNumber() {
        assertThat(CuError.name(123456)).isEqualTo("CUDA_ERROR_123456");
    }

    @ParameterizedTest
    @ValueSource(ints = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719})
    void lostContextIsFatal(int code) {
        assertThat(CuError.isFatal(code)).isTrue();
        assertThat(CuError.failure("cuStreamSynchronize", code, "cuda:3"))
                .isInstanceOfSatisfying(
                        NativeCallException.class, e -> assertThat(e.isFatal()).isTrue());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 400, 500, 600, 701, 704, 720, 900, 910})
    void othersAreNot(int code) {
        assertThat(CuError.isFatal(code)).isFalse();
    }

    @Test
    void messageHasCallNameCodeAndDevice() {
        assertThat(CuError.failure("cuMemAlloc_v2", 2, "cuda:5"))
                .isInstanceOfSatisfying(
                        NativeCallException.class,
                        e -> {
                            assertThat(e.call()).isEqualTo("cuMemAlloc_v2");
                            assertThat(e.code()).isEqualTo(2);
                        })
                .hasMessageContainingAll(
                        "cuMemAlloc_v2", "cuda:5", "CUDA_ERROR_OUT_OF_MEMORY", "(2)");
    }

    @ParameterizedTest
    @ValueSource(ints = {209, 222})
    void codeForOtherGpusIsUnavailableWithCure(int code) {
        assertThat(CuError.failure("cuModuleLoadDataEx", code, "cuda:0"))
                .isInstanceOfSatisfying(
                        DeepEpUnavailableException.class,
                        e -> assertThat(e.cure()).contains("nvcc"));
    }
}
