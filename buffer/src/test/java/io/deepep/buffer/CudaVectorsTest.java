package io.deepep.buffer;

import io.deepep.EpTopology;
import io.deepep.buffer.parity.VectorConformance;
import io.deepep.testkit.TestBackend;

class CudaVectorsTest extends VectorConformance {
    @Override
    protected TestBackend backend(EpTopology topology, boolean lowLatency) {
        // Low-latency mode has one node; others are skipped.
        return new CudaTestBackend(topology.isInternode() && !lowLatency);
    }
}
