package io.deepep.cuda.ibgda;

import io.deepep.Device;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.conformance.RequiredBackends;
import org.junit.jupiter.api.BeforeAll;

/** Device code on a GPU, with warps and memory as they are. */
class IbgdaOnGpuTest extends IbgdaConformance {
    private static final int MAX_NODES = 3;

    @BeforeAll
    static void requireCuda() {
        String missing =
                GpuNicDevice.class.getResource("nic_checks.fatbin") == null
                        ? "nic_checks.fatbin is missing: built without nvcc"
                        : "";
        String reason = CudaDriver.unavailabilityReason().orElse(missing);
        RequiredBackends.assume(Device.Kind.CUDA, reason.isEmpty(), reason);
    }

    @Override
    NicDevice openDevice() {
        return new GpuNicDevice(MAX_NODES);
    }
}
