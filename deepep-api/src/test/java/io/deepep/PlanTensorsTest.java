package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/**
 * Buffers see a plan's tensors by what it visits: one left out could lie in memory that is gone, or
 * that others write.
 */
class PlanTensorsTest {
    private final Tensor rows = tensor(DType.BF16, 3, 256);
    private final Tensor codes = tensor(DType.FP8_E4M3, 3, 256);
    private final Tensor scales = tensor(DType.F32, 3, 2);
    private final Tensor idx = tensor(DType.I64, 3, 2);
    private final Tensor weights = tensor(DType.F32, 3, 2);
    private final Tensor stats = tensor(DType.I64, 2);

    private record Handle(int numTokens, int numRecvTokens, int hidden, int numTopk, int numExperts)
            implements DispatchHandle {
        @Override
        public boolean expanded() {
            return false;
        }
    }

    private record LowLatency(Tensor srcInfo, Tensor layoutRange, int numTokens, int numTopk)
            implements LowLatencyHandle {}

    private static Tensor tensor(DType dtype, long... shape) {
        return Tensor.allocate(Arena.ofAuto(), dtype, shape);
    }

    private static List<String> given(Consumer<BiConsumer<String, Tensor>> visit) {
        List<String> names = new ArrayList<>();
        visit.accept(
                (name, tensor) -> {
                    if (tensor != null) {
                        names.add(name);
                    }
                });
        return names;
    }

    private static void requireTensors(Plan plan, List<String> all, List<String> outputs) {
        assertThat(given(plan.state()::forEachTensor)).containsExactlyInAnyOrderElementsOf(all);
        assertThat(given(plan.state()::forEachOutput)).containsExactlyInAnyOrderElementsOf(outputs);
        assertThat(plan.toString()).contains(all).doesNotContain("null");
    }

    @Test
    void dispatch() {
        DispatchLayout layout =
                new DispatchLayout(
                        tensor(DType.I32, 2),
                        null,
                        tensor(DType.I32, 8),
                        tensor(DType.BOOL, 3, 2),
                        Event.completed());
        requireTensors(
                DispatchPlan.builder(codes, scales)
                        .topk(idx, weights, 8)
                        .expectLayout(layout)
                        .build(),
                List.of(
                        "x",
                        "scales",
                        "topkIdx",
                        "topkWeights",
                        "layout.numTokensPerRank",
                        "layout.numTokensPerExpert",
                        "layout.isTokenInRank"),
                List.of());
    }

    @Test
    void combine() {
        requireTensors(
                CombinePlan.builder(codes, new Handle(3, 3, 256, 2, 8))
                        .scales(scales)
                        .topkWeights(weights)
                        .bias(rows, rows)
                        .out(rows)
                        .build(),
                List.of("x", "scales", "topkWeights", "bias0", "bias1", "out"),
                List.of("out"));
    }

    @Test
    void lowLatencyDispatch() {
        requireTensors(
                LowLatencyDispatchPlan.builder(rows, idx)
                        .topkWeights(weights)
                        .cumulativeStats(stats)
                        .waitCostStats(stats)
                        .build(),
                List.of("x", "topkIdx", "topkWeights", "cumulativeStats", "waitCostStats"),
                List.of("cumulativeStats", "waitCostStats"));
    }

    @Test
    void lowLatencyCombine() {
        requireTensors(
                LowLatencyCombinePlan.builder(rows, idx, weights, new LowLatency(null, null, 3, 2))
                        .out(rows)
                        .waitCostStats(stats)
                        .build(),
                List.of("x", "topkIdx", "topkWeights", "out", "waitCostStats"),
                List.of("out", "waitCostStats"));
    }
}
