package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuLibrary;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("ptx")
class CudaDriverTest {
    @Test
    void reasonIsGivenExactlyWhereUnavailable() {
        assertThat(CudaDriver.unavailabilityReason().isEmpty()).isEqualTo(CudaDriver.isAvailable());
    }

    @Test
    void withoutDriverCauseAndCureAreGiven() {
        assumeFalse(CudaDriver.isAvailable(), "there is a driver");
        assertThatThrownBy(CudaDriver::ensureAvailable)
                .isInstanceOfSatisfying(
                        DeepEpUnavailableException.class,
                        e -> {
                            assertThat(e.reason()).isNotBlank();
                            assertThat(e.cure()).isNotBlank();
                            assertThat(e)
                                    .hasMessage(CudaDriver.unavailabilityReason().orElseThrow());
                        });
        assertThatThrownBy(() -> CudaDevice.of(0)).isInstanceOf(DeepEpUnavailableException.class);
        assertThatThrownBy(CudaDriver::devices).isInstanceOf(DeepEpUnavailableException.class);
    }

    @Test
    void missingLibraryIsNamed() {
        assumeFalse(CuLibrary.failure().isEmpty(), "the library is loaded");
        assertThat(CuLibrary.failure().orElseThrow())
                .hasMessageContaining("libcuda.so.1")
                .hasMessageContaining("install the NVIDIA driver");
    }

    @Test
    void missingFunctionThrowsWhenCalledNotWhenBound() {
        CuCall missing = CuCall.of("cuNoSuchFunction", ADDRESS);
        assertThatThrownBy(() -> missing.call(MemorySegment.NULL))
                .isInstanceOf(DeepEpUnavailableException.class);
    }

    @Test
    void oldDriverIsRefusedWithBothVersions() {
        assertThat(CudaDriver.tooOld(11040))
                .hasMessageContaining("CUDA 11.4")
                .hasMessageContaining("12.5")
                .hasMessageContaining("R555");
    }

    @ParameterizedTest
    @CsvSource({
        "100, CUDA_ERROR_NO_DEVICE, CUDA_VISIBLE_DEVICES",
        "34, CUDA_ERROR_STUB_LIBRARY, LD_LIBRARY_PATH",
        "802, CUDA_ERROR_SYSTEM_NOT_READY, nvidia-fabricmanager",
        "803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, reboot",
        "999, CUDA_ERROR_UNKNOWN, nvidia-smi"
    })
    void failedStartHasItsOwnCure(int code, String name, String cure) {
        DeepEpUnavailableException e = CudaDriver.initFailed(code, null);
        assertThat(e.reason()).contains(name).contains("(" + code + ")");
        assertThat(e.cure()).contains(cure);
    }

    @Test
    void aGpuWithoutRoomSaysWhatToDo() {
        RuntimeException full =
                CudaContext.withCure(
                        new NativeCallException("cuX", 2, "out of memory", "cuda:1", false), 1);
        assertThat(full)
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("cuda:1 has no room")
                .hasMessageContaining("CUDA_DEVICE_MAX_CONNECTIONS=8");
        var other = new NativeCallException("cuX", 101, "invalid device", "cuda:1", false);
        assertThat(CudaContext.withCure(other, 1)).isSameAs(other);
    }

    /** And no other: EAGER loading would load all kernels of all libraries onto all GPUs. */
    @ParameterizedTest
    @CsvSource({"CUDA_DEVICE_MAX_CONNECTIONS, 32", "CUDA_MODULE_LOADING, "})
    void queuesAreSetBeforeTheDriverStarts(String name, String value) throws Throwable {
        boolean started = CudaDriver.isAvailable();
        String given = System.getenv(name);
        Linker linker = Linker.nativeLinker();
        var getenv =
                linker.downcallHandle(
                        linker.defaultLookup().find("getenv").orElseThrow(),
                        FunctionDescriptor.of(ADDRESS, ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment found = (MemorySegment) getenv.invokeExact(arena.allocateFrom(name));
            assertThat(found.address() == 0 ? null : found.reinterpret(256).getString(0))
                    .as("driver started: " + started)
                    .isEqualTo(given == null ? value : given);
        }
    }
}
