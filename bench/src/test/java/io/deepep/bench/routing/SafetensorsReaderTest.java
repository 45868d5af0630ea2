package io.deepep.bench.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class SafetensorsReaderTest {
    private static List<NamedArray> read(byte[] file) {
        return SafetensorsReader.read("f.safetensors", ByteBuffer.wrap(file));
    }

    @Test
    void tensorsAreReadAndOthersLeftOut() {
        byte[] file =
                RoutingFiles.safetensors(
                        """
                {"__metadata__": {"format": "pt"},
                 "topk_idx": {"dtype": "I64", "shape": [1, 2], "data_offsets": [0, 16]},
                 "router": {"dtype": "BF16", "shape": [4], "data_offsets": [16, 24]},
                 "topk_weights": {"dtype": "F32", "shape": [1, 2], "data_offsets": [24, 32]}}""",
                        RoutingFiles.i64(3, -1),
                        new byte[8],
                        RoutingFiles.f32(0.5f, 0.125f));
        List<NamedArray> arrays = read(file);
        assertThat(arrays).extracting(NamedArray::name).containsExactly("topk_idx", "topk_weights");
        assertThat(arrays.get(0).integerAt(0)).isEqualTo(3);
        assertThat(arrays.get(0).integerAt(1)).isEqualTo(-1);
        assertThat(arrays.get(1).floatAt(1)).isEqualTo(0.125f);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "not json",
                "[1, 2]",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": [1], \"data_offsets\": [0, 16]}}",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": [1], \"data_offsets\": [8, 0]}}",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": [1]}}",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": {\"b\": 1}, \"data_offsets\": [0, 8]}}",
                "{\"a\": {\"dtype\": \"I64\", \"shape\": [-1], \"data_offsets\": [0, 8]}}"
            })
    void brokenHeadersAreRefused(String json) {
        byte[] file = RoutingFiles.safetensors(json, RoutingFiles.i64(1));
        assertThatThrownBy(() -> read(file)).isInstanceOf(RoutingFileException.class);
    }

    @Test
    void aHeaderThatGoesPastTheEndIsRefused() {
        byte[] file = RoutingFiles.i64(1L << 40, 0);
        assertThatThrownBy(() -> read(file)).hasMessageContaining("exceeds the file");
        byte[] cut = RoutingFiles.i64(9, 0);
        assertThatThrownBy(() -> read(cut))
                .hasMessageContaining("header of 9 bytes exceeds the file");
        byte[] negative = RoutingFiles.i64(-1, 0);
        assertThatThrownBy(() -> read(negative)).hasMessageContaining("exceeds the file");
        assertThatThrownBy(() -> read(new byte[3])).hasMessageContaining("too few");
        assertThat(read(RoutingFiles.safetensors("{}"))).isEmpty();
    }
}
