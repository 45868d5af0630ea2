package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.conformance.BackendSuite;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Calls whose plans have been used before allocate nothing, on the Java heap or on the GPU. */
@Tag("manyCalls")
@BackendSuite(only = "cuda")
class CudaHotPathTest {
    private static final int NUM_CALLS = 2000;
    private static final int NUM_ROUNDS = 6;

    @Test
    void synchronousCalls() throws InterruptedException {
        CudaExchange.run((_, exchange) -> requireNoAllocation(exchange, CallOptions.sync()));
    }

    @Test
    void callsOnAStream() throws InterruptedException {
        CudaExchange.run(
                (communicator, exchange) -> {
                    CudaTestStream stream = new CudaTestStream(exchange.device);
                    communicator.barrier(CudaExchange.TIMEOUT);
                    requireNoAllocation(exchange, CallOptions.sync().on(stream.stream()));
                    stream.close();
                });
    }

    private static void requireNoAllocation(CudaExchange exchange, CallOptions options) {
        Buffer buffer = exchange.buffer;
        DispatchPlan worst = exchange.dispatch();
        DispatchPlan exact = exchange.exactDispatch();
        DispatchResult received = buffer.dispatch(worst, options);
        buffer.dispatch(exact, options);
        CombinePlan back = exchange.combine(received.handle());
        CombineResult home = buffer.combine(back, options);
        exchange.verify(home);
        CudaContext context = ((CudaStream) buffer.communicationStream()).context();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long leastBytes = Long.MAX_VALUE;
        // The first rounds are the compiler's. Another rank may still be setting up in the first.
        long freeAfterFirst = Long.MAX_VALUE;
        for (int round = 0; round < NUM_ROUNDS; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < NUM_CALLS; i++) {
                buffer.dispatch(worst, options);
                buffer.combine(back, options);
                buffer.dispatch(exact, options);
            }
            leastBytes = Math.min(leastBytes, threads.getCurrentThreadAllocatedBytes() - before);
            freeAfterFirst = round == 0 ? context.freeMemoryBytes() : freeAfterFirst;
        }
        assertThat(leastBytes).as("bytes of %d calls", 3 * NUM_CALLS).isLessThan(NUM_CALLS);
        assertThat(context.freeMemoryBytes()).isGreaterThanOrEqualTo(freeAfterFirst);
        exchange.verify(buffer.dispatch(worst, options));
        exchange.verify(buffer.combine(back, options));
    }
}
