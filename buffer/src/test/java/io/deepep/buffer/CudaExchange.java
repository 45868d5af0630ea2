package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.deepep.Buffer;
import io.deepep.Config;
import io.deepep.DispatchPlan;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.lang.management.ManagementFactory;
import java.util.function.Consumer;

/** A small exchange of one node's ranks on GPUs, which leaves multiprocessors to others. */
final class CudaExchange {
    private static final int NUM_RANKS = 4;
    private static final int TOKENS = 64;
    private static final int ROWS = TOKENS * NUM_RANKS;
    private static final int NUM_SMS = 8;
    private static final int NUM_ROUNDS = 6;

    private CudaExchange() {}

    /** Runs the body on every rank, which expects {@link #worstCase} of a dispatch. */
    static void run(Consumer<NormalRank> body) {
        NormalWorld world =
                NormalWorld.bf16(RoutingSpec.of(NUM_RANKS, TOKENS, 16, 4).withSeed(3), 512);
        Config config = Config.recommended(NUM_RANKS).withNumSms(NUM_SMS);
        Ranks.run(
                BufferTestBackends.CUDA,
                Ranks.topology(1, NUM_RANKS),
                builder ->
                        builder.normal(world.limits()).dispatchConfig(config).combineConfig(config),
                context -> {
                    NormalRank exact = new NormalRank(context, world);
                    body.accept(exact.expecting(world.check().worstCase(ROWS)));
                });
    }

    /** A dispatch in worst-case mode: nobody waits for counts. */
    static DispatchPlan worstCase(NormalRank rank) {
        return rank.plan().numWorstTokens(ROWS).build();
    }

    /** Calls of plans that have been used before, as often as given, allocate nothing. */
    static void requireNoAllocation(Buffer buffer, int times, Runnable calls) {
        CudaContext context = ((CudaStream) buffer.communicationStream()).context();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long leastBytes = Long.MAX_VALUE;
        // The first rounds are the compiler's. Another rank may still be setting up in the first.
        long freeAfterFirst = Long.MAX_VALUE;
        for (int round = 0; round < NUM_ROUNDS; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < times; i++) {
                calls.run();
            }
            leastBytes = Math.min(leastBytes, threads.getCurrentThreadAllocatedBytes() - before);
            freeAfterFirst = round == 0 ? context.freeMemoryBytes() : freeAfterFirst;
        }
        assertThat(leastBytes).as("bytes, %d times", times).isLessThan(times);
        assertThat(context.freeMemoryBytes()).isGreaterThanOrEqualTo(freeAfterFirst);
    }
}
