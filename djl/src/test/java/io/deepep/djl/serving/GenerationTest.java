package io.deepep.djl.serving;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
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

    /** Or the answers to its second prompt were those to the first one with the next seed. */
    @Test
    void ranksHaveNumbersOfTheirOwn() {
        Generation one = new Generation(1, 1, 1, 1);
        Generation next = new Generation(1, 1, 1, 2);
        try (NDManager manager = Moe.manager()) {
            NDArray logits = manager.zeros(new Shape(64, 320));
            assertThat(one.samplerOfRank(1).next(logits).toLongArray())
                    .isEqualTo(one.samplerOfRank(1).next(logits).toLongArray())
                    .isNotEqualTo(one.samplerOfRank(0).next(logits).toLongArray())
                    .isNotEqualTo(next.samplerOfRank(0).next(logits).toLongArray());
        }
    }
}
