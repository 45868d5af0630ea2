package io.deepep.djl.example;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.djl.ExpertExchange;
import io.deepep.djl.SafetensorsWriter;
import io.deepep.djl.SafetensorsWriter.Values;
import io.deepep.djl.Transport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Makes the weights of a model up, the same from the same seed, as BF16 safetensors. */
final class ModelFiles {
    static final String PREFIX = "model.";
    private static final float GATE_BIAS = 0.05f;

    private ModelFiles() {}

    /**
     * Writes the model into a folder: a file for all but the experts, and one per expert number.
     */
    static void write(Path folder, ModelSize size, long seed)
            throws IOException, InterruptedException {
        Map<String, Values> weights = new TreeMap<>();
        try (InProcessGroup one = InProcessGroup.of(1)) {
            one.run(
                    communicator -> {
                        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .normal(
                                                        NormalLimits.of(
                                                                1,
                                                                size.hidden(),
                                                                size.numTopk(),
                                                                size.numExperts()))
                                                .open();
                                ExpertExchange exchange =
                                        ExpertExchange.normal(buffer, Transport.BF16)) {
                            MoeTransformer model = new MoeTransformer(size, exchange);
                            model.initialize(manager, DataType.FLOAT32, new Shape(1));
                            weights.putAll(SafetensorsWriter.valuesOf(model, PREFIX, "BF16"));
                        }
                    });
        }
        Random random = new Random(seed);
        weights.replaceAll((name, values) -> made(name, values, random));
        Files.createDirectories(folder);
        Map<String, Map<String, Values>> files = new TreeMap<>();
        Map<String, String> fileOf = new TreeMap<>();
        weights.forEach(
                (name, values) -> {
                    fileOf.put(name, fileOf(name));
                    files.computeIfAbsent(fileOf(name), _ -> new TreeMap<>()).put(name, values);
                });
        for (Map.Entry<String, Map<String, Values>> file : files.entrySet()) {
            SafetensorsWriter.write(folder.resolve(file.getKey()), file.getValue());
        }
        SafetensorsWriter.writeIndex(folder, fileOf);
    }

    private static Values made(String name, Values values, Random random) {
        float[] elements = new float[values.elements().length];
        long[] shape = values.shape().getShape();
        boolean norm = shape.length == 1 && !name.endsWith("bias");
        float scale =
                shape.length == 1
                        ? GATE_BIAS
                        : (float) (1 / Math.sqrt((double) shape[shape.length - 1]));
        if (name.contains("embed_tokens")) {
            scale = 1;
        }
        for (int i = 0; i < elements.length; i++) {
            elements[i] = norm ? 1 : scale * (float) random.nextGaussian();
        }
        return new Values("BF16", values.shape(), elements);
    }

    private static String fileOf(String name) {
        return name.contains(".experts.")
                ? "expert-" + name.replaceAll(".*\\.experts\\.(\\d+)\\..*", "$1") + ".safetensors"
                : "other.safetensors";
    }
}
