package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.ParameterStore;
import com.google.gson.GsonBuilder;
import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.cuda.CudaDevice;
import io.deepep.djl.SwiGluExperts.Extras;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.LongStream;

/**
 * Times a layer over all GPUs, a rank on each, with random weights, or over two ranks on the CPU:
 * the slowest rank's microseconds for each part, after which it waits for its GPU, and for the
 * whole of it without such waits. A program, run from the bundle; {@code
 * python-parity/layer_times.py} does the same in PyTorch, and {@code deepep report} shows both.
 *
 * <pre>
 * {@code java ... io.deepep.djl.LayerTimes HIDDEN INTERMEDIATE EXPERTS TOPK FILE.json TOKENS...}
 * </pre>
 */
final class LayerTimes {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private enum Part {
        GATE,
        DISPATCH,
        EXPERTS,
        COMBINE
    }

    private final Buffer buffer;
    private final NDManager manager;
    private final Shape shape;
    private final Repeats repeats;

    /** Where the part at hand began, and nanoseconds of each. */
    private long begun;

    private final long[] spent = new long[Part.values().length];

    private LayerTimes(Buffer buffer, NDManager manager, Shape shape, Repeats repeats) {
        this.buffer = buffer;
        this.manager = manager;
        this.shape = shape;
        this.repeats = repeats;
    }

    /** How often a layer runs unmeasured, and measured. */
    record Repeats(int warmUp, int times) {
        /**
         * Enough that Java has compiled what it does: after ten, a gate takes four times as long.
         */
        static final Repeats HOT = new Repeats(1000, 200);
    }

    /** Of the layer. */
    private record Shape(int hidden, int intermediate, int experts, int topk) {}

    /** Runs the program. */
    public static void main(String[] args) throws InterruptedException, IOException {
        run(Repeats.HOT, args);
    }

    static void run(Repeats repeats, String... args) throws InterruptedException, IOException {
        int[] numbers = Arrays.stream(args).limit(4).mapToInt(Integer::parseInt).toArray();
        Shape shape = new Shape(numbers[0], numbers[1], numbers[2], numbers[3]);
        int[] tokens = Arrays.stream(args).skip(5).mapToInt(Integer::parseInt).toArray();
        int most = Arrays.stream(tokens).max().orElseThrow();
        int mostDecoded = Math.min(most, 128);
        List<Map<String, Object>> records = new ArrayList<>();
        try (InProcessGroup group = InProcessGroup.of(numRanks())) {
            group.run(
                    communicator -> {
                        Device device = TorchDevices.ofRank(communicator.rank());
                        try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
                                Buffer buffer = open(communicator, device, shape, most)) {
                            LayerTimes times = new LayerTimes(buffer, manager, shape, repeats);
                            var measured = times.measure(tokens, mostDecoded);
                            if (communicator.rank() == 0) {
                                records.addAll(measured);
                            }
                        }
                    });
        }
        Files.writeString(
                Path.of(args[4]), new GsonBuilder().setPrettyPrinting().create().toJson(records));
    }

    private static int numRanks() {
        return TorchDevices.numGpus() == 0 ? 2 : TorchDevices.numGpus();
    }

    private static Buffer open(Communicator communicator, Device device, Shape shape, int most) {
        return Buffer.builder(communicator)
                .device(TorchDevices.deviceOf(device))
                .normal(NormalLimits.of(most, shape.hidden, shape.topk, shape.experts))
                .lowLatency(
                        new LowLatencyLimits(
                                Math.min(most, 128), shape.hidden, shape.topk, shape.experts))
                .timeout(PATIENCE)
                .open();
    }

    private List<Map<String, Object>> measure(int[] tokens, int mostDecoded) {
        int numLocal = shape.experts / buffer.topology().numRanks();
        LocalExperts experts =
                new SwiGluExperts(
                        random(numLocal, 2L * shape.intermediate, shape.hidden),
                        random(numLocal, shape.hidden, shape.intermediate),
                        Extras.NONE);
        List<Map<String, Object>> records = new ArrayList<>();
        for (boolean lowLatency : new boolean[] {true, false}) {
            try (ExpertExchange exchange = Moe.open(buffer, Transport.BF16, lowLatency)) {
                for (int numTokens : tokens) {
                    if (!lowLatency || numTokens <= mostDecoded) {
                        double[] micros = measure(exchange, experts, numTokens);
                        records.add(
                                record(lowLatency ? "low-latency" : "normal", numTokens, micros));
                    }
                }
            }
        }
        return records;
    }

    private Map<String, Object> record(String mode, int numTokens, double[] micros) {
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("layer", "DJL");
        record.put("mode", mode);
        record.put("hidden", shape.hidden);
        record.put("intermediate", shape.intermediate);
        record.put("experts", shape.experts);
        record.put("topk", shape.topk);
        record.put("ranks", buffer.topology().numRanks());
        record.put("device", deviceName());
        record.put("tokens", numTokens);
        for (Part part : Part.values()) {
            record.put(part.name().toLowerCase(Locale.ROOT) + "Micros", micros[part.ordinal()]);
        }
        record.put("layerMicros", micros[Part.values().length]);
        if (buffer.topology().rank() == 0) {
            System.out.println(record);
        }
        return record;
    }

    private String deviceName() {
        Device device = manager.getDevice();
        return device.isGpu() ? CudaDevice.of(device.getDeviceId()).name() : "CPU";
    }

    private NDArray random(long... dimensions) {
        NDArray array = TorchTensors.empty(manager, DType.BF16, dimensions);
        for (int e = 0; e < dimensions[0]; e++) {
            try (NDManager scope = manager.newSubManager()) {
                NDArray values =
                        scope.randomNormal(
                                0, 0.02f, array.get(scope, e).getShape(), DataType.FLOAT32);
                TorchTensors.cast(values, array.get(scope, e));
            }
        }
        return array;
    }

    /** Microseconds of each part and of the whole layer: means of many, of the slowest rank. */
    private double[] measure(ExpertExchange exchange, LocalExperts experts, int numTokens) {
        ExpertGate gate = new SoftmaxGate(TopkRule.of(shape.experts, shape.topk));
        gate.initialize(manager, DataType.FLOAT32, new ai.djl.ndarray.types.Shape(1, shape.hidden));
        gate.freezeParameters(true);
        NDArray x = Moe.random(manager, buffer.topology().rank(), 1, numTokens, shape.hidden);
        LocalExperts lapped =
                rows -> {
                    lap(Part.DISPATCH);
                    NDArray results = experts.run(rows);
                    lap(Part.EXPERTS);
                    return results;
                };
        repeat(repeats.warmUp, scope -> layer(exchange, gate, lapped, in(x, scope), true));
        Arrays.fill(spent, 0);
        repeat(repeats.times, scope -> layer(exchange, gate, lapped, in(x, scope), true));
        repeat(repeats.warmUp, scope -> layer(exchange, gate, experts, in(x, scope), false));
        long start = System.nanoTime();
        repeat(repeats.times, scope -> layer(exchange, gate, experts, in(x, scope), false));
        ByteBuffer mine = ByteBuffer.allocate(Double.BYTES * (spent.length + 1));
        LongStream.of(spent).forEach(nanos -> mine.putDouble(nanos / 1e3 / repeats.times));
        mine.putDouble((System.nanoTime() - start) / 1e3 / repeats.times);
        return slowest(buffer.options().communicator().allGather(mine.array(), PATIENCE));
    }

    private static double[] slowest(List<byte[]> ranks) {
        double[] slowest = new double[Part.values().length + 1];
        for (byte[] rank : ranks) {
            ByteBuffer micros = ByteBuffer.wrap(rank);
            for (int i = 0; i < slowest.length; i++) {
                slowest[i] = Math.max(slowest[i], micros.getDouble());
            }
        }
        return slowest;
    }

    private static NDArray in(NDArray x, NDManager scope) {
        NDArray view = x.reshape(x.getShape());
        view.attach(scope);
        return view;
    }

    private void layer(
            ExpertExchange exchange,
            ExpertGate gate,
            LocalExperts experts,
            NDArray x,
            boolean laps) {
        if (laps) {
            synchronize();
            begun = System.nanoTime();
        }
        NDList routing =
                gate.forward(new ParameterStore(x.getManager(), false), new NDList(x), false);
        if (laps) {
            lap(Part.GATE);
        }
        exchange.exchange(x, routing.get(0), routing.get(1), shape.experts, experts, () -> {});
        if (laps) {
            lap(Part.COMBINE);
        }
    }

    /** Ends a part: waits for the GPU. */
    private void lap(Part part) {
        synchronize();
        long now = System.nanoTime();
        spent[part.ordinal()] += now - begun;
        begun = now;
    }

    private void synchronize() {
        if (manager.getDevice().isGpu()) {
            Buffer.capture(TorchStreams.current(manager.getDevice())).synchronize();
        }
    }

    /** Many steps, that the host may run ahead of; all ranks have finished them then. */
    private void repeat(int times, Consumer<NDManager> step) {
        for (int i = 0; i < times; i++) {
            try (NDManager scope = manager.newSubManager()) {
                step.accept(scope);
            }
        }
        synchronize();
        buffer.options().communicator().barrier(PATIENCE);
    }
}
