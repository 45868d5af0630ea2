package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalSoak;

/** For processes that a launcher started: {@code -Ddeepep.ranksPerProcess=1}. */
class CudaNvshmemSoakTest extends NormalSoak {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
