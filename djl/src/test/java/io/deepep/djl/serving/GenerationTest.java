package io.deepep.djl.serving;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDManager;
import io.deepep.djl.Moe;
import org.junit.jupiter.api.Test;

class GenerationTest {
    /** Doubles have fewer digits than seeds. */
    @Test
    void anArrayHoldsAllOfIt() {
        Generation wanted = new Generation(3, 0.7, 0.9, Long.MAX_VALUE - 1);
        try (NDManager manager = Moe.manager()) {
            assertThat(Generation.of(wanted.toArray(manager))).isEqualTo(wanted);
        }
    }
}
