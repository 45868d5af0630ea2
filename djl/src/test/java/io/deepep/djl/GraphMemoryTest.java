package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GraphMemoryTest {
    @ParameterizedTest
    @CsvSource({
        "PYTORCH_ALLOC_CONF, backend:cudaMallocAsync",
        "PYTORCH_CUDA_ALLOC_CONF, 'max_split_size_mb:512, backend: cudaMallocAsync'",
        "PYTORCH_NO_CUDA_MEMORY_CACHING, 1",
        "PYTORCH_NO_CUDA_MEMORY_CACHING, ''",
    })
    void otherAllocatorsServeNoCaptures(String name, String value) {
        assertThat(GraphMemory.allocatesFor(Map.of(name, value))).isFalse();
    }

    @ParameterizedTest
    @ValueSource(strings = {"backend:native", "expandable_segments:True", ""})
    void itsOwnDoes(String settings) {
        assertThat(GraphMemory.allocatesFor(Map.of("PYTORCH_ALLOC_CONF", settings))).isTrue();
    }

    @Test
    void itIsTheDefault() {
        assertThat(GraphMemory.allocatesFor(Map.of())).isTrue();
    }
}
