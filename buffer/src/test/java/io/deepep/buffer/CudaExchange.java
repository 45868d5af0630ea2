package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.time.Duration;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** One rank of a small exchange on a GPU: buffer, plans, and what must come of them. */
final class CudaExchange implements AutoCloseable {
    static final int NUM_RANKS = 4;
    static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final int TOKENS = 64;
    private static final int ROWS = TOKENS * NUM_RANKS;
    private static final int HIDDEN = 512;
    private static final int NUM_SMS = 8;
    private static final int TOPK = 4;
    private static final int EXPERTS = 16;

    final Buffer buffer;
    final Device device;
    private final int rank;
    private final TestBackend backend = BufferTestBackends.CUDA;
    private final Routing routing =
            RoutingSpec.of(NUM_RANKS, TOKENS, EXPERTS, TOPK).withSeed(3).generate();
    private final NormalOracle oracle = new NormalOracle(routing);
    private final List<Tokens> tokens = ofRanks(r -> Tokens.bf16(r, TOKENS, HIDDEN, 3));
    private final List<Tensor> outputs = ofRanks(r -> Tokens.expertOutputs(ROWS, HIDDEN, 7 + r));

    private CudaExchange(Communicator communicator) {
        rank = communicator.rank();
        device = backend.device(rank, NUM_RANKS);
        Config config = Config.recommended(NUM_RANKS).withNumSms(NUM_SMS);
        buffer =
                Buffer.builder(communicator)
                        .device(device)
                        .normal(NormalLimits.of(TOKENS, HIDDEN, TOPK, EXPERTS))
                        .dispatchConfig(config)
                        .combineConfig(config)
                        .timeout(TIMEOUT)
                        .open();
    }

    /** What one rank does. */
    interface Body {
        void run(Communicator communicator, CudaExchange exchange);
    }

    /** Runs the body on every rank. */
    static void run(Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        try (CudaExchange exchange = new CudaExchange(communicator)) {
                            body.run(communicator, exchange);
                        }
                    });
        }
    }

    private static <T> List<T> ofRanks(IntFunction<T> of) {
        return IntStream.range(0, NUM_RANKS).mapToObj(of).toList();
    }

    Tensor upload(Tensor hostTensor) {
        return backend.upload(device, hostTensor);
    }

    /** In worst-case mode: nobody waits for counts. */
    DispatchPlan dispatch() {
        return plan().numWorstTokens(ROWS).build();
    }

    /** With exact counts. */
    DispatchPlan exactDispatch() {
        return plan().build();
    }

    private DispatchPlan.Builder plan() {
        return DispatchPlan.builder(upload(tokens.get(rank).x()))
                .topk(
                        upload(routing.topkIdxTensor(rank)),
                        upload(routing.weightsTensor(rank)),
                        EXPERTS);
    }

    /** Of a dispatch in worst-case mode. */
    CombinePlan combine(DispatchHandle handle) {
        return CombinePlan.builder(outputs(), handle).build();
    }

    /** The rows that the experts of this rank return, in memory that peers have no access to. */
    Tensor outputs() {
        return upload(outputs.get(rank));
    }

    /** Copies one device tensor's elements to another of the same shape. */
    void write(Tensor from, Tensor to) {
        backend.write(backend.download(from), to);
    }

    /** Compares a dispatch in worst-case mode. */
    void verify(DispatchResult received) {
        received.event().synchronize();
        check().worstCase(ROWS).check(rank, received, backend::download);
    }

    void verify(CombineResult home) {
        home.event().synchronize();
        NormalCombineOracle.of(check(), NUM_RANKS)
                .check(rank, CombineFormat.BF16, outputs, List.of(), backend.download(home.x()));
    }

    private NormalDispatchCheck check() {
        return NormalDispatchCheck.of(oracle, tokens);
    }

    @Override
    public void close() {
        buffer.close();
    }
}
