package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.SafetensorsWriter.Values;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SafetensorsTest {
    private static final float[] ELEMENTS = {0, 1, -2.5f, 0.25f, 100, -0.125f};

    @TempDir Path folder;
    private final NDManager manager = Moe.manager();

    @AfterEach
    void close() {
        manager.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"F32", "BF16", "F16"})
    void readsEveryTypeOfWeights(String dtype) throws IOException {
        Path file = folder.resolve("a.safetensors");
        SafetensorsWriter.write(
                file,
                Map.of(
                        "w", new Values(dtype, new Shape(2, 3), ELEMENTS),
                        "v", new Values("F32", new Shape(1), new float[] {9})));
        try (Safetensors tensors = Safetensors.open(file)) {
            assertThat(tensors.names()).containsExactlyInAnyOrder("v", "w");
            NDArray view = tensors.view(manager, "w");
            assertThat(view.getShape()).isEqualTo(new Shape(2, 3));
            assertThat(view.toType(DataType.FLOAT32, true).toFloatArray())
                    .containsExactly(ELEMENTS);
        }
    }

    @Test
    void knowsWhereInItsFileATensorLies() throws IOException {
        Path file = folder.resolve("a.safetensors");
        SafetensorsWriter.write(
                file,
                Map.of(
                        "v", new Values("F32", new Shape(1), new float[] {9}),
                        "w", new Values("F32", new Shape(2, 3), ELEMENTS)));
        try (Safetensors tensors = Safetensors.open(file)) {
            MemorySegment bytes = TorchTensors.borrow(tensors.view(manager, "w")).segment();
            Safetensors.Place place = tensors.placeOf(bytes);
            assertThat(place.file()).isEqualTo(file);
            FloatBuffer found =
                    ByteBuffer.wrap(Files.readAllBytes(file))
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .position((int) place.offset())
                            .slice()
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .asFloatBuffer();
            float[] elements = new float[ELEMENTS.length];
            found.get(elements);
            assertThat(elements).containsExactly(ELEMENTS);
            assertThat(tensors.placeOf(MemorySegment.ofArray(new byte[1]))).isNull();
        }
    }

    @Test
    void knowsInWhichFileATensorLies() throws IOException {
        Map<String, String> fileOf = Map.of("a", "1.safetensors", "b", "2.safetensors");
        SafetensorsWriter.writeIndex(folder, fileOf);
        for (Map.Entry<String, String> each : fileOf.entrySet()) {
            SafetensorsWriter.write(
                    folder.resolve(each.getValue()),
                    Map.of(each.getKey(), new Values("F32", new Shape(2, 3), ELEMENTS)));
        }
        try (Safetensors tensors = Safetensors.open(folder)) {
            NDArray a = tensors.view(manager, "a");
            NDArray b = tensors.view(manager, "b");
            for (Map.Entry<String, NDArray> each : Map.of("a", a, "b", b).entrySet()) {
                assertThat(tensors.placeOf(TorchTensors.borrow(each.getValue()).segment()).file())
                        .isEqualTo(folder.resolve(fileOf.get(each.getKey())));
            }
        }
    }

    /** Or the disk space of a file that is deleted stays taken. */
    @Test
    void closingUnmaps() throws IOException {
        Path file = folder.resolve("a.safetensors");
        SafetensorsWriter.write(
                file, Map.of("v", new Values("F32", new Shape(1), new float[] {9})));
        SafetensorsFile mapped = SafetensorsFile.open(file);
        mapped.close();
        assertThat(mapped.data().scope().isAlive()).isFalse();

        Safetensors tensors = Safetensors.open(file);
        tensors.close();
        assertThat(tensors.numOpenFiles()).isZero();
        tensors.close();
    }

    @Test
    void opensOnlyTheFilesThatAreRead() throws IOException {
        SafetensorsWriter.write(
                folder.resolve("1.safetensors"),
                Map.of("a", new Values("F32", new Shape(1), new float[] {1})));
        SafetensorsWriter.writeIndex(folder, Map.of("a", "1.safetensors", "b", "2.safetensors"));
        try (Safetensors tensors = Safetensors.open(folder)) {
            assertThat(tensors.numOpenFiles()).isZero();
            assertThat(tensors.view(manager, "a").getFloat(0)).isEqualTo(1);
            assertThat(tensors.numOpenFiles()).isEqualTo(1);
            assertThatThrownBy(() -> tensors.view(manager, "b"))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("2.safetensors is missing, in which ")
                    .hasMessageContaining(
                            "model.safetensors.index.json has b; complete the folder");
        }
    }

    /** The index is of an earlier save, whose files are gone. */
    @Test
    void aSingleFileGoesBeforeAnIndex() throws IOException {
        SafetensorsWriter.writeIndex(folder, Map.of("a", "1.safetensors"));
        SafetensorsWriter.write(
                folder.resolve("model.safetensors"),
                Map.of("a", new Values("F32", new Shape(1), new float[] {1})));
        try (Safetensors tensors = Safetensors.open(folder)) {
            assertThat(tensors.view(manager, "a").getFloat(0)).isEqualTo(1);
        }
    }

    @Test
    void missingTensorIsToldWithOthersLikeIt() throws IOException {
        SafetensorsWriter.write(
                folder.resolve("model.safetensors"),
                Map.of("model.gate.weight", new Values("F32", new Shape(1), new float[] {1})));
        try (Safetensors tensors = Safetensors.open(folder)) {
            assertThatThrownBy(() -> tensors.view(manager, "gate.weight"))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("no tensor gate.weight")
                    .hasMessageContaining("model.gate.weight");
            assertThatThrownBy(() -> tensors.view(manager, "lm_head.weight"))
                    .hasMessageEndingWith("no tensor lm_head.weight; it has 1 tensors");
        }
    }

    @Test
    void brokenFilesAreRefused() throws IOException {
        assertThatThrownBy(() -> Safetensors.open(folder))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("model.safetensors");
        assertRefused("short", new byte[3], "truncated");
        assertRefused("long", new byte[] {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, "header of 3");
        byte[] huge = new byte[100_000_010];
        ByteBuffer.wrap(huge).order(ByteOrder.LITTLE_ENDIAN).putLong(100_000_001);
        assertRefused("huge", huge, "header of 100000001");
        assertRefused("text", header("this is no JSON"), "header is not");
        assertRefused("list", header("[1]"), "header is not");
        assertRefused("lacks", header("{\"w\":{\"dtype\":\"F32\"}}"), "header is not");
        for (String wrong :
                new String[] {
                    "\"shape\":1,\"data_offsets\":[0,0]",
                    "\"shape\":[\"x\"],\"data_offsets\":[0,0]",
                    "\"shape\":[null],\"data_offsets\":[0,0]",
                    "\"shape\":[0],\"data_offsets\":[0]",
                    "\"shape\":[0],\"data_offsets\":0",
                    "\"shape\":[0],\"data_offsets\":[{},{}]"
                }) {
            String header = "{\"w\":{\"dtype\":\"F32\"," + wrong + "}}";
            assertRefused("odd", header(header), "header is not");
        }
        assertRefused(
                "past",
                header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"),
                "not within the 0 bytes");
    }

    @Test
    void brokenIndexesAreRefused() throws IOException {
        Path index = folder.resolve("model.safetensors.index.json");
        for (String wrong :
                new String[] {
                    "[]",
                    "{}",
                    "{\"weight_map\":1}",
                    "{\"weight_map\":{\"w\":null}}",
                    "{\"weight_map\":{\"w\":{}}}",
                    "{\"weight_map\":{\"w\":\"\\u0000\"}}"
                }) {
            Files.writeString(index, wrong);
            assertThatThrownBy(() -> Safetensors.open(folder))
                    .as(wrong)
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining(index.toString());
        }
        Files.writeString(index, "{\"weight_map\":{}}", StandardCharsets.UTF_16);
        assertThatThrownBy(() -> Safetensors.open(folder))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(index.toString());
    }

    @Test
    void typesAndSizesThatAreNotWeightsAreRefused() throws IOException {
        String entries =
                "{\"i8\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                        + "\"few\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]},"
                        + "\"many\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}";
        byte[] file = Arrays.copyOf(header(entries), header(entries).length + 4);
        Path path = Files.write(folder.resolve("odd.safetensors"), file);
        try (Safetensors tensors = Safetensors.open(path)) {
            assertThatThrownBy(() -> tensors.view(manager, "i8"))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("dtype I8");
            assertThatThrownBy(() -> tensors.view(manager, "few"))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("few has 4 bytes for shape (2)");
            assertThatThrownBy(() -> tensors.view(manager, "many"))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("many has 4 bytes for shape (4611686018427387905)");
        }
    }

    /** Though the products, in a long, are the elements that are there: 4, 0 and 1. */
    @Test
    void sizesThatNoTensorHasAreRefused() throws IOException {
        assertShapeRefused("[4,4611686018427387905]", 16);
        assertShapeRefused("[4294967296,4294967296]", 0);
        assertShapeRefused("[-1,-1]", 4);
    }

    private void assertShapeRefused(String shape, int numBytes) throws IOException {
        byte[] header =
                header(
                        "{\"w\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,%s]}}"
                                .formatted(shape, numBytes));
        Path path = folder.resolve("product.safetensors");
        Files.write(path, Arrays.copyOf(header, header.length + numBytes));
        assertThatThrownBy(
                        () -> {
                            try (Safetensors tensors = Safetensors.open(path)) {
                                tensors.view(manager, "w");
                            }
                        })
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(path.toString());
    }

    private void assertRefused(String name, byte[] bytes, String message) throws IOException {
        Path file = Files.write(folder.resolve(name + ".safetensors"), bytes);
        assertThatThrownBy(() -> Safetensors.open(file))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining(message);
    }

    private static byte[] header(String json) {
        return SafetensorsWriter.header(json).array();
    }
}
