package io.deepep.djl.example;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.djl.ExpertExchange;
import io.deepep.djl.Safetensors;
import io.deepep.djl.SafetensorsParameters;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.Transport;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The model as one rank has it. */
final class RankModel implements AutoCloseable {
    private static final int MAX_TOKENS = 256;

    private final int rank;
    private final NDManager manager;
    private final Buffer buffer;
    private final ExpertExchange exchange;
    private final MoeTransformer model;

    private RankModel(Communicator communicator, ModelSize size, boolean lowLatency) {
        rank = communicator.rank();
        Device device = TorchDevices.ofRank(communicator.localRank());
        manager = NDManager.newBaseManager(device, "PyTorch");
        buffer =
                Buffer.builder(communicator)
                        .device(TorchDevices.deviceOf(device))
                        .normal(
                                NormalLimits.of(
                                        MAX_TOKENS,
                                        size.hidden(),
                                        size.numTopk(),
                                        size.numExperts()))
                        .lowLatency(
                                new LowLatencyLimits(
                                        MAX_TOKENS,
                                        size.hidden(),
                                        size.numExperts(),
                                        size.numTopk()))
                        .open();
        exchange =
                lowLatency
                        ? ExpertExchange.lowLatency(buffer, Transport.BF16)
                        : ExpertExchange.normal(buffer, Transport.BF16);
        model = new MoeTransformer(size, exchange);
    }

    /** Opens the rank's buffer and reads its part of the weights: collective. */
    static RankModel load(
            Communicator communicator, Path folder, ModelSize size, boolean lowLatency)
            throws IOException {
        RankModel loaded = new RankModel(communicator, size, lowLatency);
        try (Safetensors weights = Safetensors.open(folder)) {
            SafetensorsParameters.load(weights, loaded.model, ModelFiles.PREFIX, loaded.manager);
        }
        return loaded;
    }

    int rank() {
        return rank;
    }

    /** Continues the prompts by as many steps on every rank; without prompts it only helps. */
    List<List<Long>> generate(List<List<Long>> prompts, int numNewTokens) {
        List<List<Long>> sequences = new ArrayList<>();
        prompts.forEach(prompt -> sequences.add(new ArrayList<>(prompt)));
        for (int step = 0; step < numNewTokens; step++) {
            List<float[]> logits = lastLogits(sequences);
            for (int i = 0; i < sequences.size(); i++) {
                sequences.get(i).add(argMax(logits.get(i)));
            }
        }
        List<List<Long>> added = new ArrayList<>();
        for (int i = 0; i < prompts.size(); i++) {
            List<Long> sequence = sequences.get(i);
            added.add(List.copyOf(sequence.subList(prompts.get(i).size(), sequence.size())));
        }
        return added;
    }

    /** One forward pass: the logits after the last token of each sequence. */
    List<float[]> lastLogits(List<List<Long>> sequences) {
        try (NDManager scope = manager.newSubManager()) {
            long[] tokens =
                    sequences.stream().flatMap(List::stream).mapToLong(Long::longValue).toArray();
            long[] lengths = sequences.stream().mapToLong(List::size).toArray();
            NDList inputs = new NDList(ids(scope, tokens), ids(scope, lengths));
            NDArray logits =
                    model.forward(new ParameterStore(scope, false), inputs, false)
                            .singletonOrThrow();
            List<float[]> last = new ArrayList<>();
            long end = 0;
            for (long length : lengths) {
                end += length;
                last.add(logits.get(end - 1).toFloatArray());
            }
            return last;
        }
    }

    private static NDArray ids(NDManager scope, long[] values) {
        return scope.create(values, new Shape(values.length));
    }

    private static long argMax(float[] values) {
        int best = 0;
        for (int i = 1; i < values.length; i++) {
            best = values[i] > values[best] ? i : best;
        }
        return best;
    }

    @Override
    public void close() {
        exchange.close();
        buffer.close();
        manager.close();
    }
}
