package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IbgdaOptionsTest {
    private static IbgdaOptions.Group ofDepth(int depth) {
        return new IbgdaOptions.Group(List.of(-1, 1), 0, 0, 1, depth);
    }

    @ParameterizedTest
    @ValueSource(ints = {256, 4096, 32768})
    void depthsThatQueuesHave(int depth) {
        assertThat(ofDepth(depth).numBlocks()).isEqualTo(depth);
    }

    /** By the name that users give. */
    @ParameterizedTest
    @ValueSource(ints = {Integer.MIN_VALUE, -256, 1, 128, 257, 1000, 65536})
    void otherDepthsAreRefused(int depth) {
        assertThatThrownBy(() -> ofDepth(depth))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("qpDepth=%s is not a power of two in [256, 32768]", depth);
    }
}
