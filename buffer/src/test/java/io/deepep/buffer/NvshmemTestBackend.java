package io.deepep.buffer;

import io.deepep.Network;
import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.normal.cuda.CudaNormalKernels;
import io.deepep.testkit.TestBackend;
import org.junit.jupiter.api.Assumptions;

/** The CUDA backend over NVSHMEM where all GPUs reach each other's memory. */
final class NvshmemTestBackend {
    private NvshmemTestBackend() {}

    /** Skips the calling test where there is no NVSHMEM, or not one process per rank. */
    static TestBackend create() {
        Assumptions.assumeTrue(
                Integer.valueOf(1).equals(Integer.getInteger("deepep.ranksPerProcess")),
                "started by CudaNetworkProcessTest with a process per rank");
        assumeNvshmem();
        return new CudaTestBackend(Network.nvshmem(Network.Transport.NONE));
    }

    static void assumeNvshmem() {
        Assumptions.assumeTrue(
                NvshmemInstallation.find().isPresent() && CudaNormalKernels.haveNetworkKernels(),
                NvshmemInstallation.CURE);
    }
}
