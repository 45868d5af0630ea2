package io.deepep.cuda.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class KernelStructTest {
    private static final KernelStruct STRUCT =
            KernelStruct.builder("TestParams", "")
                    .u64("addresses", "", 3)
                    .u64("next", "")
                    .i32("counts", "", 2)
                    .build();

    @Test
    void elementsOfAnArrayEndWhereItEnds() {
        KernelStruct.Params params = STRUCT.allocate(Arena.ofAuto());
        params.set("addresses", 2, 7).setInt("counts", 1, 5);
        assertThatThrownBy(() -> params.set("addresses", 3, 9))
                .hasMessage("TestParams.addresses: idx=3 is not in [0, 3)");
        assertThatThrownBy(() -> params.setInt("counts", -1, 9))
                .hasMessage("TestParams.counts: idx=-1 is not in [0, 2)");
        assertThat(params.memory().segment().get(ValueLayout.JAVA_LONG, STRUCT.offset("next")))
                .isZero();
    }
}
