package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalConformance;

/**
 * Normal mode across virtual nodes over NVSHMEM. It needs a process per rank: {@link
 * CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemConformanceTest extends NormalConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
