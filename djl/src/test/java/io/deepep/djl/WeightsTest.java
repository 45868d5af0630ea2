package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.DType;
import io.deepep.djl.SafetensorsWriter.Values;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tensors of a checkpoint, right and wrong ones. */
class WeightsTest {
    private static final float[] FP4 = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

    private final NDManager manager = Moe.manager();
    private final Map<String, Values> tensors = new TreeMap<>();

    @TempDir Path folder;

    @AfterEach
    void close() {
        manager.close();
    }

    private interface Use {
        void of(Weights weights) throws IOException;
    }

    private void use(Use use) throws IOException {
        Path file = folder.resolve("model.safetensors");
        SafetensorsWriter.write(file, tensors);
        try (Safetensors opened = Safetensors.open(file);
                Weights weights = Weights.of(opened, manager, DType.BF16)) {
            use.of(weights.at("a"));
        }
    }

    private void put(String name, String dtype, Shape shape, float... elements) {
        float[] all = elements.length > 0 ? elements : new float[(int) shape.size()];
        tensors.put(name, new Values(dtype, shape, all));
    }

    private static float[] floats(NDArray array) {
        return array.toType(DataType.FLOAT32, true).toFloatArray();
    }

    @Test
    void areOfTheTypeThatWasAskedFor() throws IOException {
        for (String dtype : new String[] {"BF16", "F16", "F32"}) {
            put("a." + dtype, dtype, new Shape(1, 2), 1.5f, -3);
        }
        use(
                weights -> {
                    for (String dtype : new String[] {"BF16", "F16", "F32"}) {
                        NDArray matrix = weights.matrix(dtype, 1, 2);
                        assertThat(TorchTensors.tensorOf(matrix).dtype()).isEqualTo(DType.BF16);
                        assertThat(floats(matrix)).containsExactly(1.5f, -3);
                        assertThat(weights.vector(dtype, 1, 2).getDataType())
                                .isEqualTo(DataType.FLOAT32);
                    }
                });
    }

    /** As any other FP8 weight; some tools convert gates too. */
    @Test
    void gatesMayBeFp8() throws IOException {
        put("a.gate.weight", "F8_E4M3", new Shape(2, 2), 1, -3, 8, 0);
        put("a.gate.weight_scale_inv", "F32", new Shape(1, 1), 0.5f);
        use(
                weights -> {
                    ExpertGate gate = new SoftmaxGate(TopkRule.of(2, 1));
                    gate.prepare(2);
                    weights.load(gate, "gate");
                    NDArray loaded = gate.getDirectParameters().get("weight").getArray();
                    assertThat(loaded.toFloatArray()).containsExactly(0.5f, -1.5f, 4, 0);
                    assertThat(loaded.hasGradient()).isFalse();
                });
    }

    @Test
    void wrongTensorsAreNamed() throws IOException {
        put("a.w", "BF16", new Shape(2, 3));
        put("a.fp8", "F8_E4M3", new Shape(2, 3));
        put("a.scaled", "F8_E4M3", new Shape(2, 130));
        put("a.scaled_scale_inv", "F32", new Shape(1, 1));
        put("a.bytes", "U8", new Shape(2, 3));
        put("a.powers", "F8_E4M3", new Shape(2, 3));
        put("a.powers_scale_inv", "U8", new Shape(1, 1));
        put("a.gate_up_proj_bias", "BF16", new Shape(2, 8));
        use(
                weights -> {
                    refused(() -> weights.matrix("missing", 1), "no tensor a.missing");
                    refused(() -> weights.matrix("w", 3, 2), "a.w has shape (2, 3)", "(3, 2)");
                    refused(() -> weights.matrix("fp8", 2, 3), "a.fp8_scale_inv");
                    refused(() -> weights.matrix("bytes", 2, 3), "a.bytes has dtype U8");
                    refused(
                            () -> weights.matrix("powers", 2, 3),
                            "a.powers_scale_inv has dtype U8");
                    refused(
                            () -> weights.matrix("scaled", 2, 130),
                            "a.scaled_scale_inv has shape (1, 1)",
                            "(1, 2)");
                    refused(
                            () ->
                                    new ExpertWeights(MoeFamily.GPT_OSS, 1, 32, 4, 7, 1)
                                            .load(weights, 2),
                            "a.gate_up_proj_bias has shape");
                    refused(
                            () ->
                                    new ExpertWeights(MoeFamily.MIXTRAL, 1, 32, 4, 7, 1)
                                            .load(weights, 5),
                            "no tensor a.5.w1.weight");
                });
    }

    private interface Load {
        Object get() throws IOException;
    }

    private static void refused(Load load, String... messages) {
        assertThatThrownBy(load::get)
                .isInstanceOf(IllegalArgumentException.class)
                .satisfies(e -> assertThat(e.getMessage()).contains(messages));
    }

    /** The second of two experts, from bytes to the rows that are multiplied with. */
    @Test
    void mxfp4IsUnpacked() throws IOException {
        int hidden = 64;
        int intermediate = 32;
        Random random = new Random(3);
        float[] gateUp = bytes(random, 2 * 2 * intermediate * hidden / 2, 0, 256);
        float[] gateUpScales = bytes(random, 2 * 2 * intermediate * hidden / 32, 120, 16);
        float[] down = bytes(random, 2 * hidden * intermediate / 2, 0, 256);
        float[] downScales = bytes(random, 2 * hidden, 120, 16);
        put("a.gate_up_proj_blocks", "U8", new Shape(2, 2L * intermediate, 2, 16), gateUp);
        put("a.gate_up_proj_scales", "U8", new Shape(2, 2L * intermediate, 2), gateUpScales);
        put("a.down_proj_blocks", "U8", new Shape(2, hidden, 1, 16), down);
        put("a.down_proj_scales", "U8", new Shape(2, hidden, 1), downScales);
        put("a.gate_up_proj_bias", "BF16", new Shape(2, 2L * intermediate));
        put("a.down_proj_bias", "BF16", new Shape(2, hidden));
        use(
                weights -> {
                    SwiGluExperts experts =
                            new ExpertWeights(MoeFamily.GPT_OSS, 1, hidden, intermediate, 7, 1)
                                    .load(weights, 1);
                    float[] rows = floats(experts.gateUp());
                    for (int row = 0; row < 2 * intermediate; row++) {
                        // Gates are the even rows of the file.
                        int in = row < intermediate ? 2 * row : 2 * (row - intermediate) + 1;
                        for (int h = 0; h < hidden; h++) {
                            int at = (2 * intermediate + in) * hidden + h;
                            assertThat(rows[row * hidden + h])
                                    .isEqualTo(value(gateUp, gateUpScales, at));
                        }
                    }
                    float[] outputs = floats(experts.down());
                    for (int i = 0; i < outputs.length; i++) {
                        assertThat(outputs[i])
                                .isEqualTo(value(down, downScales, hidden * intermediate + i));
                    }
                });
    }

    /** As many values, but of another format. */
    @Test
    void mxfp4OfSmallerBlocksIsRefused() throws IOException {
        put("a.gate_up_proj_blocks", "U8", new Shape(1, 64, 4, 8));
        put("a.gate_up_proj_scales", "U8", new Shape(1, 64, 4));
        put("a.gate_up_proj_bias", "BF16", new Shape(1, 64));
        put("a.down_proj_bias", "BF16", new Shape(1, 64));
        use(
                weights ->
                        refused(
                                () ->
                                        new ExpertWeights(MoeFamily.GPT_OSS, 1, 64, 32, 7, 1)
                                                .load(weights, 0),
                                "a.gate_up_proj_blocks and _scales have",
                                "in blocks of 32"));
    }

    private static float value(float[] bytes, float[] scales, int at) {
        int code = (int) bytes[at / 2] >> (at % 2 == 0 ? 0 : 4) & 15;
        float magnitude = FP4[code & 7] * (float) Math.scalb(1.0, (int) scales[at / 32] - 127);
        return code < 8 ? magnitude : -magnitude;
    }

    private static float[] bytes(Random random, int count, int first, int range) {
        float[] bytes = new float[count];
        for (int i = 0; i < count; i++) {
            bytes[i] = first + random.nextInt(range);
        }
        return bytes;
    }
}
