package io.deepep.djl.decoder;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.MoeLayers;
import io.deepep.djl.Safetensors;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.TorchTensors;
import io.deepep.djl.Weights;
import io.deepep.djl.decoder.Pass.Sequence;
import io.deepep.error.RankMismatchException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

/**
 * One rank's part of a Hugging Face model. It reads prompts in normal mode, and generates one token
 * of every sequence at a time in low-latency mode (or in normal mode, if low-latency mode does not
 * support the hidden size or so many sequences). All ranks make the same calls; each has its own
 * prompts, or none.
 */
public final class Decoder implements AutoCloseable {
    /** Ranks ask so seldom whether all answers have ended: the host waits for the GPU then. */
    private static final int ENDS_EVERY = 16;

    private final DecoderOptions options;

    /** Owns the weights and caches; passes leave nothing here. */
    final NDManager manager;

    private final Buffer buffer;
    final TwoModes exchange;
    private Model model;
    private final PromptLimits limits;

    /**
     * Loads the model. Collective.
     *
     * @param folder a folder with config.json and safetensors
     * @param device the device on which the rank computes, see {@link TorchDevices#ofRank}
     * @throws IllegalArgumentException if a tensor is missing, or has another shape than
     *     config.json says, or the hidden size cannot travel as the options say
     * @throws RankMismatchException if ranks have different config.json, weights or options
     */
    public static Decoder open(
            Path folder, Communicator communicator, Device device, DecoderOptions options)
            throws IOException {
        CheckpointConfig config = CheckpointConfig.read(folder);
        MoeLayers layers = MoeLayers.of(config);
        options.transport().requireHidden(layers.hidden());
        PromptLimits limits = new PromptLimits(options, config.number("vocab_size"));
        NDManager manager = NDManager.newBaseManager(device, "PyTorch");
        try {
            int maxTokens = Math.max(options.maxPromptTokens(), options.maxSequences());
            Buffer.Builder builder =
                    Buffer.builder(communicator)
                            .device(TorchDevices.deviceOf(device))
                            .normal(layers.normalLimits(maxTokens));
            layers.lowLatencyLimits(options.maxSequences()).ifPresent(builder::lowLatency);
            Buffer buffer = builder.open();
            return new Decoder(manager, buffer, limits).load(folder, config, communicator);
        } catch (Throwable failure) {
            manager.close();
            throw failure;
        }
    }

    private Decoder load(Path folder, CheckpointConfig config, Communicator communicator)
            throws IOException {
        try {
            try (Safetensors tensors = Safetensors.open(folder);
                    Weights weights = Weights.of(tensors, manager, options.type())) {
                requireSameModel(folder, config, tensors, communicator);
                model = Model.load(config, weights, options, exchange);
                return this;
            }
        } catch (Throwable failure) {
            close();
            throw failure;
        }
    }

    /** Buffers are the same for all models of these sizes; the experts of two would be mixed. */
    private void requireSameModel(
            Path folder, CheckpointConfig config, Safetensors tensors, Communicator communicator)
            throws IOException {
        CRC32 ofConfig = new CRC32();
        ofConfig.update(Files.readAllBytes(folder.resolve("config.json")));
        CRC32 ofAttention = new CRC32();
        for (int layer = 0; layer < config.number("num_hidden_layers"); layer++) {
            tensors.sample("model.layers." + layer + ".self_attn.", ofAttention);
        }
        String own =
                "config.json with checksum %08x, attention with %08x, %s"
                        .formatted(ofConfig.getValue(), ofAttention.getValue(), options);
        List<byte[]> ofRanks =
                communicator.allGather(
                        own.getBytes(StandardCharsets.UTF_8), buffer.options().timeout());
        for (int rank = 0; rank < ofRanks.size(); rank++) {
            String other = new String(ofRanks.get(rank), StandardCharsets.UTF_8);
            if (!other.equals(own)) {
                throw RankMismatchException.of(
                        "Decoder.open", "the model", communicator.rank(), own, rank, other);
            }
        }
    }

    private Decoder(NDManager manager, Buffer buffer, PromptLimits limits) {
        this.manager = manager;
        this.buffer = buffer;
        this.limits = limits;
        options = limits.options();
        try {
            exchange = new TwoModes(buffer, options.transport());
        } catch (Throwable failure) {
            buffer.close();
            throw failure;
        }
    }

    /**
     * Continues prompts by new tokens. Collective, with the same {@code numNewTokens} on every
     * rank.
     *
     * @param prompts the tokens of each prompt, at least one
     * @return the new tokens of each prompt
     */
    public List<long[]> generate(List<long[]> prompts, int numNewTokens, Sampler sampler) {
        return generate(prompts, numNewTokens, sampler, Set.of());
    }

    /**
     * The same, which stops soon after every prompt of every rank has got one of the tokens that
     * end an answer: then all get fewer new tokens.
     *
     * @param endTokens the same on every rank
     */
    public List<long[]> generate(
            List<long[]> prompts, int numNewTokens, Sampler sampler, Set<Integer> endTokens) {
        limits.check(prompts, numNewTokens);
        int numSlots = options.maxSequences();
        try (NDManager run = manager.newSubManager()) {
            NDArray next = first(prompts, sampler, run);
            long[] lengths = new long[numSlots];
            Arrays.setAll(lengths, i -> i < prompts.size() ? prompts.get(i).length : 0);
            NDArray positions = ids(run, lengths);
            NDArray firstRows =
                    run.arange(0, numSlots, 1, DataType.INT64).muli(options.maxLength());
            // Kept on the device, so that the host can run ahead.
            NDArray added = run.create(new Shape(numSlots, numNewTokens), DataType.INT64);
            added.set(new NDIndex(":, 0"), next);
            int made = 1;
            while (made < numNewTokens
                    && !(made % ENDS_EVERY == 0
                            && haveEnded(added, prompts.size(), made, endTokens))) {
                step(next, positions, firstRows, sampler);
                added.set(new NDIndex(":, {}", made++), next);
            }
            exchange.awaitLast();
            return made(added, prompts.size(), made);
        }
    }

    private static List<long[]> made(NDArray added, int numPrompts, int numTokens) {
        return IntStream.range(0, numPrompts)
                .mapToObj(i -> Arrays.copyOf(added.get(i).toLongArray(), numTokens))
                .toList();
    }

    /** Whether no rank needs another token. Collective, if there are tokens that end an answer. */
    private boolean haveEnded(NDArray added, int numPrompts, int made, Set<Integer> endTokens) {
        if (endTokens.isEmpty()) {
            return false;
        }
        boolean own =
                made(added, numPrompts, made).stream()
                        .allMatch(
                                tokens ->
                                        Arrays.stream(tokens)
                                                .mapToInt(Math::toIntExact)
                                                .anyMatch(endTokens::contains));
        byte[] told = {(byte) (own ? 1 : 0)};
        BufferOptions of = buffer.options();
        return of.communicator().allGather(told, of.timeout()).stream()
                .allMatch(all -> all[0] == 1);
    }

    /** Computes the logits [V] after each prompt. Collective. */
    public List<float[]> logits(List<long[]> prompts) {
        limits.check(prompts, 1);
        try (NDManager scope = manager.newSubManager()) {
            NDArray logits = prefill(prompts, scope);
            return IntStream.range(0, prompts.size())
                    .mapToObj(i -> logits.get(i).toFloatArray())
                    .toList();
        }
    }

    /** Reads the prompts. INT64 [slots], the first new token of each; 0 in slots without. */
    private NDArray first(List<long[]> prompts, Sampler sampler, NDManager run) {
        NDArray next = run.create(new long[options.maxSequences()]);
        try (NDManager scope = manager.newSubManager()) {
            NDArray logits = prefill(prompts, scope);
            if (!prompts.isEmpty()) {
                next.set(new NDIndex(":{}", prompts.size()), sampler.next(logits));
            }
        }
        return next;
    }

    private NDArray prefill(List<long[]> prompts, NDManager scope) {
        exchange.decoding(false);
        List<Sequence> sequences = new ArrayList<>();
        int numTokens = 0;
        for (int i = 0; i < prompts.size(); i++) {
            sequences.add(new Sequence(i, numTokens, prompts.get(i).length));
            numTokens += prompts.get(i).length;
        }
        long[] tokens = new long[numTokens];
        long[] positions = new long[numTokens];
        long[] rows = new long[numTokens];
        long[] last = new long[prompts.size()];
        for (Sequence sequence : sequences) {
            for (int i = 0; i < sequence.length(); i++) {
                tokens[sequence.first() + i] = prompts.get(sequence.slot())[i];
                positions[sequence.first() + i] = i;
                rows[sequence.first() + i] = (long) sequence.slot() * options.maxLength() + i;
            }
            last[sequence.slot()] = sequence.first() + sequence.length() - 1L;
        }
        Pass pass = new Pass(scope, ids(scope, positions), ids(scope, rows), sequences);
        NDArray logits = model.logits(ids(scope, tokens), pass, ids(scope, last));
        exchange.awaitLast(); // or a failure would be told to the next request
        return logits;
    }

    private static NDArray ids(NDManager scope, long[] values) {
        return scope.create(values, new Shape(values.length));
    }

    /** Adds a token to every slot, used or not: the same shapes in every step. */
    private void step(NDArray next, NDArray positions, NDArray firstRows, Sampler sampler) {
        exchange.decoding(true);
        try (NDManager scope = manager.newSubManager()) {
            NDArray now = positions.duplicate();
            now.attach(scope);
            NDArray tokens = next.duplicate();
            tokens.attach(scope);
            Pass pass = new Pass(scope, now, now.add(firstRows), null);
            NDArray all = scope.arange(0, options.maxSequences(), 1, next.getDataType());
            TorchTensors.cast(sampler.next(model.logits(tokens, pass, all)), next);
            positions.addi(1);
        }
    }

    @Override
    public void close() {
        try (manager;
                buffer) {
            exchange.close();
        }
    }
}
