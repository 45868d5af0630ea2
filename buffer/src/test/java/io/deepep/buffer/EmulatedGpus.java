package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Assumptions;

/** GPUs that a CPU stands in for, which can be what no GPU at hand is. */
final class EmulatedGpus {
    private EmulatedGpus() {}

    /**
     * Skips the test on other GPUs, or none.
     *
     * @param why it needs these
     */
    static void require(String why) {
        Assumptions.assumeTrue(CudaDriver.isAvailable(), "no GPUs; see -Pemulator");
        Assumptions.assumeTrue(CudaDevice.of(0).name().contains("emulator"), why);
    }

    /**
     * Has a call of the driver fail on this thread, as if there were no memory left.
     *
     * @param function of the driver
     * @param callsBefore that do not fail
     */
    static void failCall(String function, int callsBefore) {
        CuCall fail = CuCall.of("deepepEmulatorFail", ADDRESS, JAVA_INT, JAVA_INT);
        try (Arena arena = Arena.ofConfined()) {
            fail.invoke(arena.allocateFrom(function), callsBefore, CuError.OUT_OF_MEMORY);
        }
    }
}
