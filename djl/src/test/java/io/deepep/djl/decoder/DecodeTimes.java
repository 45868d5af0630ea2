package io.deepep.djl.decoder;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.deepep.Bf16;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.djl.SafetensorsWriter;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.Transport;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Times a decoding step in both modes, and as a graph where that works, over all GPUs, a rank on
 * each, or over two ranks on the CPU. The model has the shape of Qwen3-30B-A3B, but few layers,
 * whose experts and attention are zeros: a sequence repeats its token, and different tokens choose
 * different experts. A program, run from the bundle.
 *
 * <pre>{@code java ... io.deepep.djl.decoder.DecodeTimes FILE.json LAYERS SEQUENCES...}</pre>
 */
final class DecodeTimes {
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final Gson GSON = new GsonBuilder().setPrettyPrinting().create();

    /** Of the model. */
    record Shape(int layers, int hidden, int intermediate, int experts, int vocabulary) {
        static Shape qwen3(int layers) {
            return new Shape(layers, 2048, 768, 128, 4096);
        }
    }

    /** How often each mode makes so many steps, the first rounds to have Java compile. */
    record Repeats(int rounds, int steps) {
        static final Repeats HOT = new Repeats(14, 64);
    }

    /** How steps are made. */
    private enum Kind {
        LOW_LATENCY_GRAPH,
        LOW_LATENCY,
        NORMAL;

        static Set<Kind> possible(boolean graphs) {
            return graphs ? EnumSet.allOf(Kind.class) : EnumSet.of(LOW_LATENCY, NORMAL);
        }

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    private final Shape shape;
    private final Repeats repeats;
    private final Path folder;
    private final List<Map<String, Object>> records = new ArrayList<>();

    private DecodeTimes(Shape shape, Repeats repeats, Path folder) {
        this.shape = shape;
        this.repeats = repeats;
        this.folder = folder;
    }

    /** Runs the program. */
    public static void main(String[] args) throws Exception {
        int[] sequences = Stream.of(args).skip(2).mapToInt(Integer::parseInt).toArray();
        Shape shape = Shape.qwen3(Integer.parseInt(args[1]));
        run(shape, Repeats.HOT, Path.of(args[0]), sequences);
    }

    static void run(Shape shape, Repeats repeats, Path json, int... sequences) throws Exception {
        Path folder = Files.createTempDirectory("decode-times");
        Path weights = folder.resolve("model.safetensors");
        Path config = folder.resolve("config.json");
        try {
            DecodeTimes times = new DecodeTimes(shape, repeats, folder);
            Files.writeString(config, times.config().toString());
            times.writeWeights(weights);
            for (int each : sequences) {
                times.measure(each);
            }
            Files.writeString(json, GSON.toJson(times.records));
        } finally {
            Files.deleteIfExists(weights);
            Files.deleteIfExists(config);
            Files.deleteIfExists(folder);
        }
    }

    private void measure(int numSequences) throws InterruptedException {
        int numRanks = Math.max(TorchDevices.numGpus(), 2);
        DecoderOptions options =
                new DecoderOptions(numSequences, 512, 512, DType.BF16, Transport.BF16);
        DecoderRanks.run(
                folder,
                numRanks,
                options,
                (decoder, communicator) -> measure(decoder, communicator, numSequences));
    }

    private void measure(Decoder decoder, Communicator communicator, int numSequences) {
        int rank = communicator.rank();
        SplittableRandom random = new SplittableRandom(rank);
        List<long[]> prompts =
                IntStream.range(0, numSequences)
                        .mapToObj(_ -> new long[] {random.nextInt(shape.vocabulary)})
                        .toList();
        ExpertExchange lowLatency = decoder.exchange.decoding;
        Set<Kind> kinds = Kind.possible(lowLatency.isCapturable(decoder.manager.getDevice()));
        for (int round = 0; round < repeats.rounds; round++) {
            for (Kind kind : kinds) {
                decoder.exchange.decoding =
                        kind == Kind.NORMAL ? decoder.exchange.prefill : lowLatency;
                decoder.step.wantsGraph = kind == Kind.LOW_LATENCY_GRAPH;
                communicator.barrier(PATIENCE);
                long start = System.nanoTime();
                decoder.generate(prompts, repeats.steps + 1, Sampler.greedy());
                communicator.barrier(PATIENCE);
                double micros = (System.nanoTime() - start) / 1e3 / repeats.steps;
                if (rank == 0) {
                    record(communicator.size(), numSequences, kind, round, micros);
                }
            }
        }
        decoder.exchange.decoding = lowLatency;
    }

    private void record(int numRanks, int numSequences, Kind kind, int round, double stepMicros) {
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("layers", shape.layers);
        record.put("hidden", shape.hidden);
        record.put("intermediate", shape.intermediate);
        record.put("experts", shape.experts);
        record.put("ranks", numRanks);
        record.put("sequencesPerRank", numSequences);
        record.put("mode", kind.toString());
        record.put("round", round);
        record.put("stepMicros", stepMicros);
        System.out.println(record);
        records.add(record);
    }

    private JsonObject config() {
        JsonObject config = new JsonObject();
        config.addProperty("model_type", "qwen3_moe");
        config.addProperty("hidden_size", shape.hidden);
        config.addProperty("num_hidden_layers", shape.layers);
        config.addProperty("num_attention_heads", 32);
        config.addProperty("num_key_value_heads", 4);
        config.addProperty("head_dim", 128);
        config.addProperty("moe_intermediate_size", shape.intermediate);
        config.addProperty("num_experts", shape.experts);
        config.addProperty("num_experts_per_tok", 8);
        config.addProperty("norm_topk_prob", true);
        config.addProperty("decoder_sparse_step", 1);
        config.add("mlp_only_layers", new JsonArray());
        config.addProperty("vocab_size", shape.vocabulary);
        config.addProperty("rms_norm_eps", 1e-6);
        config.addProperty("rope_theta", 1e6);
        config.addProperty("hidden_act", "silu");
        config.addProperty("tie_word_embeddings", true);
        return config;
    }

    private Map<String, long[]> tensors() {
        Map<String, long[]> tensors = new LinkedHashMap<>();
        int hidden = shape.hidden;
        tensors.put("model.embed_tokens.weight", new long[] {shape.vocabulary, hidden});
        tensors.put("model.norm.weight", new long[] {hidden});
        for (int i = 0; i < shape.layers; i++) {
            String layer = "model.layers." + i + ".";
            tensors.put(layer + "input_layernorm.weight", new long[] {hidden});
            tensors.put(layer + "post_attention_layernorm.weight", new long[] {hidden});
            tensors.put(layer + "self_attn.q_proj.weight", new long[] {4096, hidden});
            tensors.put(layer + "self_attn.k_proj.weight", new long[] {512, hidden});
            tensors.put(layer + "self_attn.v_proj.weight", new long[] {512, hidden});
            tensors.put(layer + "self_attn.o_proj.weight", new long[] {hidden, 4096});
            tensors.put(layer + "self_attn.q_norm.weight", new long[] {128});
            tensors.put(layer + "self_attn.k_norm.weight", new long[] {128});
            tensors.put(layer + "mlp.gate.weight", new long[] {shape.experts, hidden});
            for (int e = 0; e < shape.experts; e++) {
                String expert = layer + "mlp.experts." + e + ".";
                tensors.put(expert + "gate_proj.weight", new long[] {shape.intermediate, hidden});
                tensors.put(expert + "up_proj.weight", new long[] {shape.intermediate, hidden});
                tensors.put(expert + "down_proj.weight", new long[] {hidden, shape.intermediate});
            }
        }
        return tensors;
    }

    /** A file whose zeros take no room on the disk. */
    private void writeWeights(Path path) throws IOException {
        Map<String, long[]> tensors = tensors();
        Map<String, Long> offsets = new LinkedHashMap<>();
        JsonObject entries = new JsonObject();
        long end = 0;
        for (Map.Entry<String, long[]> tensor : tensors.entrySet()) {
            String name = tensor.getKey();
            long numBytes = 2 * numElements(tensor.getValue());
            entries.add(name, SafetensorsWriter.entry("BF16", tensor.getValue(), end, numBytes));
            offsets.put(name, end);
            end += numBytes;
        }
        ByteBuffer header = SafetensorsWriter.header(entries);
        long begin = header.remaining();
        try (FileChannel file =
                FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            file.write(header);
            file.write(ByteBuffer.allocate(1), begin + end - 1);
            SplittableRandom random = new SplittableRandom(1);
            for (Map.Entry<String, long[]> tensor : tensors.entrySet()) {
                String name = tensor.getKey();
                boolean norm = name.endsWith("norm.weight");
                if (norm || name.contains("embed_tokens") || name.endsWith("mlp.gate.weight")) {
                    ByteBuffer values = values(numElements(tensor.getValue()), norm, random);
                    file.write(values, begin + offsets.get(name));
                }
            }
        }
    }

    private static ByteBuffer values(long number, boolean ones, SplittableRandom random) {
        ByteBuffer values =
                ByteBuffer.allocate(2 * Math.toIntExact(number)).order(ByteOrder.LITTLE_ENDIAN);
        while (values.hasRemaining()) {
            values.putShort(Bf16.fromFloat(ones ? 1 : (float) random.nextGaussian() * 0.05f));
        }
        return values.flip();
    }

    private static long numElements(long[] dimensions) {
        return LongStream.of(dimensions).reduce(1, Math::multiplyExact);
    }
}
