package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class TensorChecksTest {
    /** Found while a call runs, it would leave the other ranks waiting. */
    @Test
    void memoryThatIsGoneIsRefusedBeforeAnythingStarts() {
        TensorChecks checks = new TensorChecks(Device.host());
        Tensor x;
        try (Arena arena = Arena.ofShared()) {
            x = Tensor.allocate(arena, DType.F32, 4);
            checks.require("x", x, DType.F32, 4);
        }
        assertThatThrownBy(() -> checks.require("x", x, DType.F32, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("x is F32[4] on host but its arena is closed");
    }
}
