package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.normal.NormalRank;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Calls whose plans have been used before allocate nothing, on the Java heap or on the GPU. */
@Tag("manyCalls")
@BackendSuite(only = "cuda")
class CudaHotPathTest {
    private static final int NUM_TIMES = 2000;

    @Test
    void synchronousCalls() {
        CudaExchange.run(rank -> requireNoAllocation(rank, CallOptions.sync()));
    }

    @Test
    void callsOnAStream() {
        CudaExchange.run(
                rank -> {
                    try (TestStream stream = new CudaTestStream(rank.context().device())) {
                        rank.context().meet();
                        requireNoAllocation(rank, CallOptions.sync().on(stream.stream()));
                    }
                });
    }

    private static void requireNoAllocation(NormalRank rank, CallOptions options) {
        Buffer buffer = rank.context().buffer();
        DispatchPlan worst = CudaExchange.worstCase(rank);
        DispatchPlan exact = rank.expecting(rank.world().check()).plan().build();
        DispatchResult received = buffer.dispatch(worst, options);
        buffer.dispatch(exact, options);
        CombinePlan back = rank.home(received.handle()).build();
        rank.verify(buffer.combine(back, options));
        CudaExchange.requireNoAllocation(
                buffer,
                NUM_TIMES,
                () -> {
                    buffer.dispatch(worst, options);
                    buffer.combine(back, options);
                    buffer.dispatch(exact, options);
                });
        rank.verify(buffer.dispatch(worst, options));
        rank.verify(buffer.combine(back, options));
    }
}
