package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.ExpertRows;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import java.util.stream.Stream;

/** A small layer's parts for tests: weights that depend on names alone, tokens on the seed. */
public final class Moe {
    public static final int HIDDEN = 128;
    public static final int INTERMEDIATE = 64;
    public static final int EXPERTS = 8;
    public static final int TOPK = 2;
    public static final int MAX_TOKENS = 64;

    private Moe() {}

    /** What one rank does. */
    public interface Body {
        void run(Communicator communicator, Buffer buffer, NDManager manager) throws Exception;
    }

    /**
     * Runs ranks as threads, each with a manager of its own: on the GPUs there are, in turn, or on
     * the host backend.
     */
    public static void run(int numRanks, Body body) throws InterruptedException {
        run(numRanks, HIDDEN, body);
    }

    /** The same with tokens of another hidden size. */
    public static void run(int numRanks, int hidden, Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        Device device = TorchDevices.ofRank(communicator.rank());
                        try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .device(TorchDevices.deviceOf(device))
                                                .normal(
                                                        NormalLimits.of(
                                                                MAX_TOKENS,
                                                                ExpertExchange.paddedHidden(hidden),
                                                                TOPK,
                                                                EXPERTS))
                                                .lowLatency(
                                                        new LowLatencyLimits(
                                                                MAX_TOKENS,
                                                                ExpertExchange.paddedHidden(hidden),
                                                                TOPK,
                                                                EXPERTS))
                                                .timeout(Duration.ofSeconds(20))
                                                .open()) {
                            body.run(communicator, buffer, manager);
                        }
                    });
        }
    }

    /** What one rank does with an exchange. */
    public interface ExchangeBody {
        void run(Communicator communicator, ExpertExchange exchange, NDManager manager)
                throws Exception;
    }

    /** Runs ranks that have an exchange each, of BF16 in normal mode. */
    public static void withExchange(int numRanks, ExchangeBody body) throws InterruptedException {
        run(
                numRanks,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = ExpertExchange.normal(buffer, Transport.BF16)) {
                        body.run(communicator, exchange, manager);
                    }
                });
    }

    /**
     * Runs ranks that have an exchange each in low-latency mode, on streams that can be captured.
     */
    public static void withCapturableExchange(int numRanks, Transport transport, ExchangeBody body)
            throws InterruptedException {
        run(
                numRanks,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = ExpertExchange.lowLatency(buffer, transport);
                            TorchStreams.Use _ = TorchStreams.use(buffer.communicationStream())) {
                        body.run(communicator, exchange, manager);
                    }
                });
    }

    /** For tests that need one. */
    static boolean hasGpu() {
        return TorchDevices.numGpus() > 0;
    }

    /** An exchange in either mode. */
    public static ExpertExchange open(Buffer buffer, Transport transport, boolean lowLatency) {
        return lowLatency
                ? ExpertExchange.lowLatency(buffer, transport)
                : ExpertExchange.normal(buffer, transport);
    }

    /** Of the device of rank 0. */
    public static NDManager manager() {
        return NDManager.newBaseManager(TorchDevices.ofRank(0), "PyTorch");
    }

    /** An element of a tensor, wherever it lies. */
    public static float element(NDManager manager, Tensor tensor, long... index) {
        return tensor.device().isHost()
                ? tensor.getFloat(index)
                : TorchTensors.arrayOf(manager, tensor)
                        .toType(DataType.FLOAT32, true)
                        .getFloat(index);
    }

    /** The tokens of a rank. */
    public static NDArray tokens(NDManager manager, int rank, int numTokens) {
        return random(manager, 100 + rank, 1, numTokens, HIDDEN);
    }

    /** Sends tokens to the first expert, which returns them. */
    public static void exchangeTokens(ExpertExchange exchange, NDManager manager, int numTokens) {
        exchange.exchange(
                tokens(manager, 0, numTokens),
                manager.zeros(new Shape(numTokens, 1), DataType.INT64),
                manager.ones(new Shape(numTokens, 1)),
                EXPERTS,
                ExpertRows::x,
                () -> {});
    }

    public static NDArray random(NDManager manager, long seed, float scale, long... shape) {
        Random random = new Random(seed);
        float[] values = new float[(int) new Shape(shape).size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = scale * (float) random.nextGaussian();
        }
        return manager.create(values, new Shape(shape));
    }

    /** Initialises a block, and gives its parameters values that follow from {@code seed}. */
    public static <B extends Block> B withWeights(B block, NDManager manager, long seed) {
        block.initialize(manager, DataType.FLOAT32, new Shape(1, HIDDEN));
        long next = seed;
        for (Parameter parameter : block.getParameters().values()) {
            parameter.freeze(true);
            NDArray value = parameter.getArray();
            value.set(random(manager, next++, 0.1f, value.getShape().getShape()).toFloatArray());
        }
        return block;
    }

    public static ExpertGate softmaxGate(NDManager manager) {
        return withWeights(new SoftmaxGate(TopkRule.of(EXPERTS, TOPK)), manager, 1);
    }

    public static SwiGluExpert expert(NDManager manager, int expert) {
        return withWeights(new SwiGluExpert(HIDDEN, INTERMEDIATE), manager, 1000 + 10 * expert);
    }

    public static NDArray forward(Block block, NDArray x) {
        ParameterStore store = new ParameterStore(x.getManager(), false);
        return block.forward(store, new NDList(x), false).singletonOrThrow();
    }

    /** The layer without any rank or transport: every expert on every token, in FLOAT32. */
    public static NDArray dense(Block gate, NDArray x, NDManager manager) {
        ParameterStore store = new ParameterStore(manager, false);
        NDList routing = gate.forward(store, new NDList(x), false);
        long[] topkIdx = routing.get(0).toLongArray();
        float[] topkWeights = routing.get(1).toFloatArray();
        NDArray sum = x.zerosLike();
        for (int e = 0; e < EXPERTS; e++) {
            float[] weights = new float[(int) x.getShape().get(0)];
            for (int i = 0; i < topkIdx.length; i++) {
                weights[i / TOPK] += topkIdx[i] == e ? topkWeights[i] : 0;
            }
            NDArray output = forward(expert(manager, e), x);
            sum = sum.add(output.mul(manager.create(weights).reshape(-1, 1)));
        }
        return sum;
    }

    /** Bytes of memory that the process uses, libtorch's included. */
    public static long residentBytes() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
            String kib = lines.filter(line -> line.startsWith("VmRSS")).findFirst().orElseThrow();
            return 1024 * Long.parseLong(kib.replaceAll("\\D", ""));
        }
    }

    public static float maxError(NDArray a, NDArray b) {
        return a.sub(b).abs().max().getFloat();
    }

    public static float largest(NDArray a) {
        return a.abs().max().getFloat();
    }
}
