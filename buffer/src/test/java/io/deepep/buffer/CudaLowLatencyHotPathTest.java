package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.lang.management.ManagementFactory;
import java.util.IdentityHashMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pairs whose plans have been used before allocate nothing, on the Java heap or on the GPU. */
@Tag("manyCalls")
@BackendSuite(only = "cuda")
class CudaLowLatencyHotPathTest {
    private static final int NUM_RANKS = 4;
    private static final int NUM_CALLS = 1000;
    private static final int NUM_ROUNDS = 6;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(8, 256, 4, 8);

    private final TestBackend backend = BufferTestBackends.CUDA;
    private final Routing routing =
            RoutingSpec.of(NUM_RANKS, LIMITS.maxTokens(), LIMITS.numExperts(), LIMITS.maxTopk())
                    .withSeed(3)
                    .generate();

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noGarbage(boolean hook) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(communicator -> run(communicator, hook));
        }
    }

    private void run(Communicator communicator, boolean hook) {
        Device device = backend.device(communicator.rank(), NUM_RANKS);
        try (Buffer buffer =
                Buffer.builder(communicator)
                        .device(device)
                        .lowLatency(LIMITS)
                        .timeout(CudaExchange.TIMEOUT)
                        .open()) {
            requireNoAllocation(new Pairs(buffer, device, communicator.rank(), hook));
        }
    }

    /** Dispatch and combine again and again; the combine of each handle is prepared once. */
    private final class Pairs {
        final Buffer buffer;
        private final Tensor topkIdx;
        private final Tensor weights;
        private final Tensor outputs;
        private final LowLatencyDispatchPlan plan;
        private final boolean hook;
        private final CallOptions options;
        private final IdentityHashMap<LowLatencyHandle, LowLatencyCombinePlan> homes =
                new IdentityHashMap<>();

        Pairs(Buffer buffer, Device device, int rank, boolean hook) {
            this.buffer = buffer;
            this.hook = hook;
            this.options = hook ? CallOptions.async() : CallOptions.sync();
            topkIdx = backend.upload(device, routing.topkIdxTensor(rank));
            weights = backend.upload(device, routing.weightsTensor(rank));
            int localExperts = LIMITS.numLocalExperts(NUM_RANKS);
            int rows = NUM_RANKS * LIMITS.maxTokens();
            outputs =
                    backend.upload(
                            device,
                            HostTensors.allocate(DType.BF16, localExperts, rows, LIMITS.hidden()));
            Tokens tokens = Tokens.bf16(rank, LIMITS.maxTokens(), LIMITS.hidden(), 3);
            plan =
                    LowLatencyDispatchPlan.builder(backend.upload(device, tokens.x()), topkIdx)
                            .receiveHook(hook)
                            .build();
        }

        void run() {
            LowLatencyDispatchResult received = buffer.lowLatencyDispatch(plan, options);
            receive(received.receiveHook());
            receive(buffer.lowLatencyCombine(home(received.handle()), options).receiveHook());
        }

        private LowLatencyCombinePlan home(LowLatencyHandle handle) {
            LowLatencyCombinePlan known = homes.get(handle);
            if (known == null) {
                known =
                        LowLatencyCombinePlan.builder(outputs, topkIdx, weights, handle)
                                .receiveHook(hook)
                                .build();
                homes.put(handle, known);
            }
            return known;
        }

        private void receive(Runnable receiveHook) {
            if (hook) {
                receiveHook.run();
            }
        }
    }

    private static void requireNoAllocation(Pairs pairs) {
        CudaContext context = ((CudaStream) pairs.buffer.communicationStream()).context();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long leastBytes = Long.MAX_VALUE;
        // The first rounds are the compiler's. Another rank may still be setting up in the first.
        long freeAfterFirst = Long.MAX_VALUE;
        for (int round = 0; round < NUM_ROUNDS; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < NUM_CALLS; i++) {
                pairs.run();
            }
            leastBytes = Math.min(leastBytes, threads.getCurrentThreadAllocatedBytes() - before);
            freeAfterFirst = round == 0 ? context.freeMemoryBytes() : freeAfterFirst;
        }
        assertThat(leastBytes).as("bytes of %d pairs", NUM_CALLS).isLessThan(NUM_CALLS);
        assertThat(context.freeMemoryBytes()).isGreaterThanOrEqualTo(freeAfterFirst);
    }
}
