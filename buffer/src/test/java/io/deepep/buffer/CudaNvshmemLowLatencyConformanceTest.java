package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyConformance;

/**
 * Low-latency mode across virtual nodes over NVSHMEM, also in turn with normal mode on one buffer.
 * It needs a process per rank: {@link CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemLowLatencyConformanceTest extends LowLatencyConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
