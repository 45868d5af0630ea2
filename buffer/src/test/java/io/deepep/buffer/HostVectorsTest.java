package io.deepep.buffer;

import io.deepep.EpTopology;
import io.deepep.buffer.parity.VectorConformance;
import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;

class HostVectorsTest extends VectorConformance {
    @Override
    protected TestBackend backend(EpTopology topology, boolean lowLatency) {
        return new HostTestBackend();
    }
}
