package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

/** What FP8 rows of a combine contradict is refused when the plan is built. */
class CombinePlanTest {
    private final Tensor bf16 = tensor(DType.BF16, 3, 256);
    private final Tensor fp8 = tensor(DType.FP8_E4M3, 3, 256);
    private final Tensor scales = tensor(DType.F32, 3, 2);
    private final DispatchHandle handle = new Handle(false);

    private static Tensor tensor(DType dtype, long... shape) {
        return Tensor.allocate(Arena.ofAuto(), dtype, shape);
    }

    private static void refuse(CombinePlan.Builder plan, String message) {
        assertThatIllegalArgumentException().isThrownBy(plan::build).withMessageContaining(message);
    }

    private record Handle(boolean expanded) implements DispatchHandle {
        @Override
        public int numTokens() {
            return 4;
        }

        @Override
        public int numRecvTokens() {
            return 3;
        }

        @Override
        public int hidden() {
            return 256;
        }

        @Override
        public int numTopk() {
            return 2;
        }

        @Override
        public int numExperts() {
            return 8;
        }
    }

    @Test
    void scalesDecideTheFormat() {
        CombinePlan plain = CombinePlan.builder(bf16, handle).build();
        assertThat(plain.format()).isEqualTo(CombineFormat.BF16);
        assertThat(plain.scales()).isNull();
        CombinePlan given = CombinePlan.builder(fp8, handle).scales(scales).build();
        assertThat(given.format()).isEqualTo(CombineFormat.FP8);
        assertThat(given.scales()).isSameAs(scales);
        CombinePlan both =
                CombinePlan.builder(fp8, handle).scales(scales).format(CombineFormat.FP8).build();
        assertThat(both.format()).isEqualTo(CombineFormat.FP8);
    }

    @Test
    void contradictions() {
        refuse(CombinePlan.builder(fp8, handle), "x is FP8_E4M3 but scales=null; give scales");
        refuse(
                CombinePlan.builder(fp8, handle).format(CombineFormat.FP8),
                "x is FP8_E4M3 but scales=null; give scales");
        refuse(
                CombinePlan.builder(bf16, handle).scales(scales),
                "scales are given but x is BF16; give x as FP8_E4M3, or no scales");
        refuse(
                CombinePlan.builder(fp8, handle).scales(scales).format(CombineFormat.BF16),
                "format=BF16 but x is FP8_E4M3 with scales; leave the format out");
        refuse(
                CombinePlan.builder(fp8, new Handle(true)).scales(scales),
                "the handle is expanded, so the rows of a token are summed before they travel; give BF16");
    }
}
