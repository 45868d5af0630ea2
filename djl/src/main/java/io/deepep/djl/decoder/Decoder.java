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
import io.deepep.djl.TorchStreams;
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
import java.util.stream.LongStream;
import java.util.zip.CRC32;

/**
 * One rank's part of a Hugging Face model. It reads prompts in normal mode, and generates one token
 * of every sequence at a time in low-latency mode (or in normal mode, if low-latency mode does not
 * support so many sequences). All ranks make the same calls; each has its own prompts, or none.
 */
public final class Decoder implements AutoCloseable {
    /**
     * Tokens after which ranks ask whether answers have ended, and new requests wait. Not each
     * time: the host waits for the GPU then.
     */
    static final int ENDS_EVERY = 16;

    private final DecoderOptions options;

    /** Owns the weights and caches; passes leave nothing here. */
    final NDManager manager;

    private final Buffer buffer;
    final TwoModes exchange;
    private Model model;
    DecodingStep step;
    private final PromptLimits limits;

    /**
     * Loads the model. Collective.
     *
     * @param folder a folder with config.json and safetensors
     * @param device the device on which the rank computes, see {@link TorchDevices#ofRank}
     * @throws IllegalArgumentException if a tensor is missing, or has a shape other than
     *     config.json says, or the hidden size cannot travel as the options say
     * @throws RankMismatchException if ranks have different config.json, weights or options
     */
    public static Decoder open(
            Path folder, Communicator communicator, Device device, DecoderOptions options)
            throws IOException {
        CheckpointConfig config = CheckpointConfig.read(folder);
        MoeLayers layers = MoeLayers.of(config);
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
                step = new DecodingStep(model, buffer, exchange, options, manager);
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
        int numLayers = config.number("num_hidden_layers");
        boolean isThere = true; // a missing layer is named when it is loaded
        for (int layer = 0; isThere && layer < numLayers; layer++) {
            isThere = tensors.sample("model.layers." + layer + ".self_attn.", ofAttention);
        }
        String own =
                "config.json with checksum %08x, attention with %08x, %s, %s"
                        .formatted(
                                ofConfig.getValue(),
                                ofAttention.getValue(),
                                options,
                                exchange.decoding.isCapturable(manager.getDevice())
                                        ? "where steps can be captured"
                                        : "where steps cannot be captured");
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
     * Continues prompts with new tokens. Collective, with the same {@code numNewTokens} on every
     * rank.
     *
     * @param prompts the tokens of each prompt, at least one
     * @return the new tokens of each prompt
     */
    public List<long[]> generate(List<long[]> prompts, int numNewTokens, Sampler sampler) {
        return generate(prompts, numNewTokens, sampler, Set.of());
    }

    /**
     * The same, but stops soon after every prompt of every rank has got one of the tokens that end
     * an answer, so that all get fewer new tokens.
     *
     * @param endTokens the same on every rank
     */
    public List<long[]> generate(
            List<long[]> prompts, int numNewTokens, Sampler sampler, Set<Integer> endTokens) {
        limits.check(prompts, numNewTokens);
        List<Share> shares = shares(prompts, sampler);
        read(shares);
        long[][] added = new long[prompts.size()][numNewTokens];
        int made = 1;
        do {
            int left = numNewTokens - made;
            // At once if nothing ends it, so that the host can run ahead.
            int steps = endTokens.isEmpty() ? left : Math.min(left, ENDS_EVERY - made % ENDS_EVERY);
            long[][] ofSlots = step(shares, steps);
            for (int i = 0; i < added.length; i++) {
                shares.getFirst().copy(ofSlots, i, added[i]);
            }
            made += steps;
        } while (made < numNewTokens && !onAllRanks(buffer, haveAllEnded(added, made, endTokens)));
        int numMade = made;
        return Arrays.stream(added).map(tokens -> Arrays.copyOf(tokens, numMade)).toList();
    }

    /** All prompts in the first slots; none for a rank without. */
    private static List<Share> shares(List<long[]> prompts, Sampler sampler) {
        int[] slots = IntStream.range(0, prompts.size()).toArray();
        return prompts.isEmpty() ? List.of() : List.of(new Share(sampler, slots, prompts));
    }

    /** Whether something is so on every rank. Collective. */
    static boolean onAllRanks(Buffer buffer, boolean here) {
        byte[] own = {(byte) (here ? 1 : 0)};
        BufferOptions of = buffer.options();
        return of.communicator().allGather(own, of.timeout()).stream().allMatch(all -> all[0] == 1);
    }

    /** Whether each of the answers has one of the tokens among its first {@code made}. */
    static boolean haveAllEnded(long[][] answers, int made, Set<Integer> endTokens) {
        return Arrays.stream(answers)
                .allMatch(
                        tokens ->
                                Arrays.stream(tokens, 0, made)
                                        .mapToInt(Math::toIntExact)
                                        .anyMatch(endTokens::contains));
    }

    /** Computes the logits [V] after each prompt. Collective. */
    public List<float[]> logits(List<long[]> prompts) {
        limits.check(prompts, 1);
        try (NDManager scope = manager.newSubManager()) {
            NDArray logits = prefill(shares(prompts, Sampler.greedy()), scope);
            return IntStream.range(0, prompts.size())
                    .mapToObj(i -> logits.get(i).toFloatArray())
                    .toList();
        }
    }

    /**
     * Reads prompts into their slots, and chooses the first new token of each. What other slots
     * hold stays. Collective: a rank without prompts has no shares.
     */
    void read(List<Share> shares) {
        try (NDManager scope = manager.newSubManager()) {
            NDArray logits = prefill(shares, scope);
            RoundSampler.ofRows(shares, scope).next(logits, step.last);
        }
    }

    private NDArray prefill(List<Share> shares, NDManager scope) {
        exchange.decoding(false);
        List<Sequence> sequences = new ArrayList<>();
        LongStream.Builder tokens = LongStream.builder();
        LongStream.Builder positions = LongStream.builder();
        LongStream.Builder rows = LongStream.builder();
        LongStream.Builder wanted = LongStream.builder();
        int numTokens = 0;
        for (Share share : shares) {
            for (int i = 0; i < share.slots.length; i++) {
                long[] prompt = share.prompts.get(i);
                sequences.add(new Sequence(share.slots[i], numTokens, prompt.length));
                for (int at = 0; at < prompt.length; at++) {
                    tokens.add(prompt[at]);
                    positions.add(at);
                    rows.add((long) share.slots[i] * options.maxLength() + at);
                }
                numTokens += prompt.length;
                wanted.add(numTokens - 1L);
            }
        }
        Pass pass =
                new Pass(scope, ids(scope, positions), ids(scope, rows), sequences, options.type());
        NDArray logits = model.logits(ids(scope, tokens), pass, ids(scope, wanted));
        exchange.awaitLast(); // or a failure would be told to the next request
        return logits;
    }

    private static NDArray ids(NDManager scope, LongStream.Builder values) {
        return scope.create(values.build().toArray());
    }

    /**
     * Adds tokens to every slot, used or not: the same shapes in every step. Collective, with the
     * same number of steps on every rank.
     *
     * @return of each slot, its last token before, and the new ones
     */
    long[][] step(List<Share> shares, int numSteps) {
        exchange.decoding(true);
        int numSlots = options.maxSequences();
        try (TorchStreams.Use _ = step.useStream();
                NDManager run = manager.newSubManager()) {
            long[] next = new long[numSlots];
            for (Share share : shares) {
                for (int i = 0; i < share.slots.length; i++) {
                    next[share.slots[i]] = share.position(i);
                }
                share.made += numSteps;
            }
            TorchTensors.cast(run.create(next), step.positions);
            NDArray added = run.create(new Shape(numSlots, numSteps + 1L), DataType.INT64);
            added.set(new NDIndex(":, 0"), step.last);
            RoundSampler sampler = RoundSampler.ofSlots(shares, numSteps, run);
            for (int made = 1; made <= numSteps; made++) {
                try (NDManager scope = run.newSubManager()) {
                    sampler.next(step.logits(scope), step.last);
                }
                step.advance();
                added.set(new NDIndex(":, {}", made), step.last);
            }
            exchange.awaitLast();
            long[] tokens = added.toLongArray();
            int each = numSteps + 1;
            return IntStream.range(0, numSlots)
                    .mapToObj(slot -> Arrays.copyOfRange(tokens, slot * each, (slot + 1) * each))
                    .toArray(long[][]::new);
        }
    }

    @Override
    public void close() {
        try (manager;
                buffer;
                exchange) {
            if (step != null) { // null if the model was refused
                step.close();
            }
        }
    }
}
