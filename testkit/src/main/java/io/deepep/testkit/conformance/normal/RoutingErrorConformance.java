package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.caught;
import static io.deepep.testkit.conformance.Misbehaviour.requireBadIndices;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireTooMany;
import static io.deepep.testkit.conformance.normal.NormalMisuses.EXPERTS;
import static io.deepep.testkit.conformance.normal.NormalMisuses.TOKENS;
import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalMisuses.LayoutPart;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.function.Function;

/** What one rank does wrong and all must learn, after which the buffer still works. */
@BackendSuite
public record RoutingErrorConformance(TestBackend backend) implements NormalMisuses.Group {
    @Cases({
        "1, 4, 16",
        "1, 4, -2",
        "1, 4, 9223372036854775807",
        "1, 4, -9223372036854775808",
        "2, 2, 16",
        "2, 2, -2",
        "2, 2, 9223372036854775807",
        "2, 2, -9223372036854775808"
    })
    public void expertOutOfRange(long expert, RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Tensor idx = context.spoiled(rank.topkIdx(), expert, TOKENS - 1, 2);
        requireBadIndices(rank, idx, CULPRIT, "=" + expert);
    }

    @Cases({"1, 2, 16", "1, 2, -2", "1, 2, 9223372036854775807", "1, 2, -9223372036854775808"})
    public void layoutOfExpertOutOfRange(long expert, RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Tensor host = context.download(rank.topkIdx());
        host.setLong(expert, TOKENS - 1, 2);
        Tensor idx = context.upload(host);
        assertThatThrownBy(
                        () ->
                                context.buffer()
                                        .getDispatchLayout(idx, EXPERTS)
                                        .event()
                                        .synchronize())
                .isInstanceOfAny(RoutingException.class, IllegalArgumentException.class)
                .hasMessageContaining(Long.toString(expert));
        rank.roundTrip();
    }

    /** A layout that is not that of the indices, in one of its parts. */
    @Cases({"1, 4", "2, 2"})
    public void contradictoryLayout(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Function<DispatchLayout, DispatchPlan.Builder> expected =
                layout -> rank.plan().expectLayout(layout);
        requireContradiction(rank, CULPRIT, expected, LayoutPart.PER_RANK, 2);
        requireContradiction(rank, CULPRIT, expected, LayoutPart.PER_EXPERT, EXPERTS - 1);
        requireContradiction(rank, CULPRIT, expected, LayoutPart.MASK, 3, 1);
        requireContradiction(rank, CULPRIT, rank.bare()::layout, LayoutPart.PER_RANK, 2);
        rank.roundTrip();
    }

    /** A dispatch fails if one rank's layout is off by one in an element, which is named. */
    static void requireContradiction(
            NormalRank rank,
            int culprit,
            Function<DispatchLayout, DispatchPlan.Builder> routing,
            LayoutPart part,
            long... at) {
        RankContext context = rank.context();
        int experts = rank.world().routing().numExperts();
        DispatchLayout layout = context.buffer().getDispatchLayout(rank.topkIdx(), experts);
        if (context.rank() == culprit) {
            layout =
                    part.change(
                            layout,
                            good -> {
                                Tensor copy = context.download(good);
                                copy.setLong(copy.getLong(at) ^ 1, at); // or turns a truth round
                                return context.upload(copy);
                            });
        }
        DispatchPlan plan = routing.apply(layout).build();
        String place = Arrays.stream(at).mapToObj("[%d]"::formatted).collect(joining());
        requireRouting(culprit, () -> rank.call(plan), part.field + place);
    }

    /** More than the caller has room for in the expanded layout, which only the receiver sees. */
    @Cases({"1, 4", "2, 2"})
    public void moreExpandedThanFits(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        int room = 9;
        int limit = context.isCulprit() ? room : 10_000;
        DispatchPlan plan =
                rank.plan().expanded(true).expertAlignment(2).numWorstTokens(limit).build();
        int needed = rank.world().oracle().expandedRows(CULPRIT, 2).size();
        for (int i = 0; i < 2; i++) {
            requireTooMany(() -> rank.call(plan), CULPRIT, needed, room);
        }
        rank.roundTrip();
    }

    /** A handle without a routing: combines and cached dispatches with it fail on every rank. */
    @Cases({"1, 4", "2, 2"})
    public void handleOfFailedDispatch(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        int rows = NormalMisuses.LIMITS.recvCapacity(4);
        Tensor idx = context.spoiled(rank.topkIdx(), EXPERTS, TOKENS - 1, 2);
        DispatchPlan plan =
                rank.bare().topk(idx, rank.weights(), EXPERTS).numWorstTokens(rows).build();
        Tensor x = context.poisoned(DType.BF16, rows, rank.world().hidden());
        Buffer buffer = context.buffer();
        DispatchResult failed = buffer.dispatch(plan, CallOptions.async());
        CombinePlan combine = CombinePlan.builder(x, failed.handle()).build();
        requireInvalidHandle(() -> buffer.combine(combine, CallOptions.async()));
        requireRouting(failed.event()::synchronize, "=" + EXPERTS);
        requireRouting(failed.event()::synchronize, "=" + EXPERTS);
        requireInvalidHandle(() -> buffer.combine(combine));
        DispatchPlan cached = rank.bare().cached(failed.handle()).build();
        requireInvalidHandle(() -> buffer.dispatch(cached));
        rank.roundTrip();
    }

    /** Refused, or, where the failure was not known then, failed. */
    private static void requireInvalidHandle(Callable<?> call) {
        assertThatThrownBy(
                        () -> {
                            Object result = call.call();
                            if (result instanceof CombineResult combined) {
                                combined.event().synchronize();
                            }
                        })
                .isInstanceOfAny(IllegalArgumentException.class, RoutingException.class)
                .hasMessageContaining("the dispatch of the handle has not run, or failed");
    }

    @Cases({"1, 4, false", "2, 2, false", "1, 4, true", "2, 2, true"})
    public void moreThanFits(int nodes, int ranksPerNode, boolean worstCase) {
        NormalWorld large = NormalMisuses.world(4);
        NormalWorld small = NormalWorld.bf16(RoutingSpec.of(4, 1, EXPERTS, 4), large.hidden());
        int room = 7;
        NormalLimits tight = large.limits(worstCase ? NormalLimits.WORST_CASE : room);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(tight),
                context -> {
                    NormalRank rank = new NormalRank(context, large);
                    DispatchPlan plan = rank.plan().numWorstTokens(worstCase ? room : 0).build();
                    for (int i = 0; i < 2; i++) {
                        CapacityExceededException error =
                                caught(CapacityExceededException.class, () -> rank.call(plan));
                        assertThat(error.capacity()).isEqualTo(room);
                        assertThat(error.needed())
                                .isEqualTo(large.oracle().rows(error.rank()).size())
                                .isGreaterThan(room);
                    }
                    new NormalRank(context, small).roundTrip();
                });
    }
}
