package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireClosed;
import static io.deepep.testkit.conformance.Misbehaviour.requireForeign;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.RankContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Calls that must be refused at once: only rank 1 makes them, so one that starts anything leaves
 * the ranks out of step and fails in the good calls that follow.
 */
@BackendSuite
public record ArgumentConformance(TestBackend backend) implements NormalMisuses.Group {
    @ParameterizedTest
    @MethodSource("io.deepep.testkit.conformance.normal.NormalMisuses#all")
    public void normalMisuse(Misuse<NormalMisuses.Rank> misuse, RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        DispatchHandle handle = rank.newHandle();
        if (context.isCulprit()) {
            requireRefused(misuse, new NormalMisuses.Rank(rank, handle));
        }
        rank.combine(handle);
        rank.roundTrip();
    }

    /** A handle is its buffer's: another buffer refuses it, of the same shape or not. */
    @Test
    public void foreignHandle(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        try (Buffer other = context.builder(this).open()) {
            DispatchHandle handle = NormalMisuses.rank(context.with(other)).newHandle();
            DispatchPlan cached = rank.bare().cached(handle).build();
            requireForeign(() -> rank.combine(handle));
            requireForeign(() -> context.buffer().dispatch(cached));
            requireForeign(() -> context.buffer().getCombineBuffer(handle));
            requireForeign(() -> context.buffer().getFp8CombineBuffer(handle));
        }
        rank.roundTrip();
    }

    @Test
    public void closedBuffer(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        DispatchHandle handle = rank.newHandle();
        Buffer buffer = context.buffer();
        buffer.close();
        buffer.close();
        requireClosed(() -> rank.roundTrip());
        requireClosed(() -> rank.combine(handle));
        requireClosed(() -> buffer.getCombineBuffer(handle));
        requireClosed(() -> buffer.getFp8CombineBuffer(handle));
        requireClosed(() -> buffer.getDispatchLayout(rank.topkIdx(), 16));
        requireClosed(buffer::communicationStream);
        requireClosed(() -> buffer.getLocalBufferTensor(DType.BF16, 1, 0, false));
    }
}
