package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

/** What a dispatch is asked for is checked when it is built, before any buffer sees it. */
class DispatchPlanTest {
    private static final int TOKENS = 4;
    private static final int HIDDEN = 256;

    private final Tensor x = tensor(DType.BF16, TOKENS, HIDDEN);
    private final Tensor idx = tensor(DType.I64, TOKENS, 2);

    private static Tensor tensor(DType dtype, long... shape) {
        return Tensor.allocate(Arena.ofAuto(), dtype, shape);
    }

    private static void refuse(DispatchPlan.Builder plan, String message) {
        assertThatIllegalArgumentException().isThrownBy(plan::build).withMessageContaining(message);
    }

    private record Handle(int numTokens, int hidden, boolean expanded) implements DispatchHandle {
        @Override
        public int numRecvTokens() {
            return 3;
        }

        @Override
        public int numTopk() {
            return 0;
        }

        @Override
        public int numExperts() {
            return 0;
        }
    }

    private static DispatchLayout layout(int numTokens, int numRanks) {
        return new DispatchLayout(
                tensor(DType.I32, numRanks),
                null,
                tensor(DType.I32, 8),
                tensor(DType.BOOL, numTokens, numRanks),
                Event.completed());
    }

    @Test
    void threeWaysToNameARouting() {
        DispatchPlan byExperts = DispatchPlan.builder(x).topk(idx, null, 8).build();
        assertThat(byExperts.topkIdx()).isSameAs(idx);
        assertThat(byExperts.layout()).isNull();
        DispatchLayout layout = layout(TOKENS, 2);
        DispatchPlan byLayout = DispatchPlan.builder(x).layout(layout).build();
        assertThat(byLayout.layout()).isSameAs(layout);
        assertThat(byLayout.topkIdx()).isNull();
        Handle handle = new Handle(TOKENS, HIDDEN, false);
        assertThat(DispatchPlan.builder(x).cached(handle).build().handle()).isSameAs(handle);
        Handle grouped = new Handle(TOKENS, HIDDEN, true);
        assertThat(DispatchPlan.builder(x).cached(handle).build().expanded()).isFalse();
        assertThat(DispatchPlan.builder(x).cached(grouped).build().expanded()).isTrue();
        assertThat(DispatchPlan.builder(x).cached(grouped).expanded(true).build().expanded())
                .isTrue();
        DispatchPlan both = DispatchPlan.builder(x).topk(idx, null, 8).expectLayout(layout).build();
        assertThat(both.layout()).isSameAs(layout);
    }

    @Test
    void tokens() {
        refuse(
                DispatchPlan.builder(tensor(DType.F32, TOKENS, HIDDEN)).topk(idx, null, 8),
                "x is F32[4, 256] on host; it must be BF16, or FP8_E4M3 with scales");
        refuse(
                DispatchPlan.builder(tensor(DType.BF16, TOKENS, 12)).topk(idx, null, 8),
                "hidden=12 is not a positive multiple of 8");
        Tensor fp8 = tensor(DType.FP8_E4M3, TOKENS, HIDDEN);
        refuse(DispatchPlan.builder(fp8).topk(idx, null, 8), "scales=null; give scales");
        refuse(
                DispatchPlan.builder(fp8, tensor(DType.F32, TOKENS, 1)).topk(idx, null, 8),
                "scales is F32[4, 1] on host; it must be F32[4, 2]");
        refuse(
                DispatchPlan.builder(x, tensor(DType.F32, TOKENS, 2)).topk(idx, null, 8),
                "scales are given but x is BF16");
    }

    @Test
    void routing() {
        DispatchPlan.Tokens tokens = DispatchPlan.builder(x);
        refuse(
                tokens.topk(tensor(DType.I64, 3, 2), null, 8),
                "topkIdx is I64[3, 2] on host; it must be I64[4, any]");
        refuse(tokens.topk(idx, tensor(DType.F32, TOKENS, 3), 8), "it must be F32[4, 2]");
        refuse(tokens.topk(idx, null, 0), "numExperts=0 must be at least 1");
        Tensor onGpu =
                Tensor.onDevice(
                        Device.cuda(1),
                        1 << 20,
                        64,
                        DType.I64,
                        new long[] {TOKENS, 2},
                        new long[] {2, 1});
        refuse(tokens.topk(onGpu, null, 8), "topkIdx is on cuda:1 but x is on host; copy it there");
        refuse(
                tokens.layout(layout(3, 2)),
                "layout.isTokenInRank is BOOL[3, 2] on host; it must be BOOL[4, 2]");
        refuse(
                tokens.cached(new Handle(TOKENS, 128, false)),
                "the handle is of a dispatch of [4, 128]; use a handle of the same shape");
    }

    @Test
    void options() {
        DispatchPlan.Tokens tokens = DispatchPlan.builder(x);
        Handle handle = new Handle(TOKENS, HIDDEN, false);
        refuse(tokens.cached(handle).expanded(true), "dispatch with expanded=false");
        Handle grouped = new Handle(TOKENS, HIDDEN, true);
        refuse(tokens.cached(grouped).expanded(false), "dispatch with expanded=true");
        refuse(tokens.layout(layout(4, 2)).expanded(true), "expanded rows");
        refuse(tokens.cached(handle).expectLayout(layout(4, 2)), "expectLayout needs topk");
        refuse(tokens.topk(idx, null, 8).expertAlignment(0), "expertAlignment=0");
        refuse(
                tokens.layout(layout(4, 2)).expertAlignment(8),
                "expertAlignment=8 aligns the rows of experts, but the routing names none");
        refuse(tokens.topk(idx, null, 8).numWorstTokens(-1), "numWorstTokens=-1 is negative");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> tokens.topk(idx, null, 8).numSms(3))
                .withMessageContaining("numSms=3 must be 1 or an even number of at least 2");
    }
}
