package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.LowLatencyFormat;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyPairs;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pairs whose plans have been used before allocate nothing, on the Java heap or on the GPU. */
@Tag("manyCalls")
@BackendSuite(only = "cuda")
class CudaLowLatencyHotPathTest {
    private static final int NUM_TIMES = 1000;
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 8, 256, 4, 8);

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noGarbage(boolean hook) {
        CallOptions options = hook ? CallOptions.async() : CallOptions.sync();
        Ranks.run(
                BufferTestBackends.CUDA,
                SHAPE.topology(),
                SHAPE::limit,
                context -> {
                    LowLatencyPairs pairs =
                            new LowLatencyPairs(
                                    SHAPE.rank(context), LowLatencyFormat.FP8, options, hook);
                    CudaExchange.requireNoAllocation(context.buffer(), NUM_TIMES, pairs::enqueue);
                });
    }
}
