package io.deepep.buffer;

import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
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
}
