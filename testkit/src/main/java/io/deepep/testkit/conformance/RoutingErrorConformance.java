package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.DispatchLayout;
import io.deepep.DispatchRequest;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyFormat;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RoutingException;
import io.deepep.testkit.routing.RoutingSpec;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What one rank does wrong and all must learn, after which the buffer still works. Part of {@link
 * BadInputConformance}.
 */
public abstract class RoutingErrorConformance extends ArgumentConformance {
    static final int EXPERTS = 16;

    @ParameterizedTest
    @CsvSource({
        "1, 4, 16",
        "2, 2, 16",
        "2, 2, -2",
        "2, 2, 9223372036854775807",
        "2, 2, -9223372036854775808"
    })
    public void expertOutOfRange(int nodes, int ranksPerNode, long expert) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor idx = context.rank() == CULPRIT ? spoiled(rank, expert) : rank.topkIdx();
                    DispatchRequest request =
                            rank.bare().topk(idx, rank.weights(), EXPERTS).build();
                    for (int i = 0; i < 2; i++) {
                        requireRouting(
                                () -> context.buffer().dispatch(request).event().synchronize());
                    }
                    rank.roundTrip();
                });
    }

    private static Tensor spoiled(NormalRank rank, long expert) {
        Tensor idx = rank.context().download(rank.topkIdx());
        idx.setLong(expert, idx.size(0) - 1, 2);
        return rank.context().upload(idx);
    }

    static void requireRouting(ThrowingCallable call) {
        RoutingException error = catchThrowableOfType(RoutingException.class, call);
        assertThat(error).as("a RoutingException on every rank").isNotNull();
        assertThat(error.rank()).isEqualTo(CULPRIT);
        assertThat(error).hasMessageContaining("rank " + CULPRIT);
    }

    @ParameterizedTest
    @ValueSource(longs = {EXPERTS, -2, Long.MAX_VALUE, Long.MIN_VALUE})
    public void layoutOfExpertOutOfRange(long expert) {
        NormalWorld world = NormalMisuses.world(2);
        Ranks.run(
                backend(),
                Ranks.topology(1, 2),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor idx = spoiled(rank, expert);
                    assertThatThrownBy(
                                    () ->
                                            context.buffer()
                                                    .getDispatchLayout(idx, EXPERTS)
                                                    .event()
                                                    .synchronize())
                            .isInstanceOfAny(RoutingException.class, IllegalArgumentException.class)
                            .hasMessageContaining(Long.toString(expert));
                    rank.roundTrip();
                });
    }

    @ParameterizedTest
    @CsvSource({
        "1, 4, 8",
        "2, 2, 8",
        "2, 2, -2",
        "2, 2, 9223372036854775807",
        "2, 2, -9223372036854775808"
    })
    public void lowLatencyExpertOutOfRange(int nodes, int ranksPerNode, long expert) {
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 10, 128, 3, 8);
        LowLatencyWorld world = shape.world(9);
        Ranks.run(
                backend(),
                shape.topology(),
                b -> b.lowLatency(shape.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Tensor idx = context.download(rank.topkIdx());
                    if (context.rank() == CULPRIT) {
                        idx.setLong(expert, 9, 2);
                    }
                    LowLatencyDispatchRequest request =
                            LowLatencyDispatchRequest.builder(rank.x(), context.upload(idx))
                                    .build();
                    for (int i = 0; i < 2; i++) {
                        requireRouting(
                                () ->
                                        context.buffer()
                                                .lowLatencyDispatch(request)
                                                .event()
                                                .synchronize());
                    }
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /** A mask that leaves out where the indices go. */
    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void contradictoryLayout(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchLayout layout =
                            context.buffer().getDispatchLayout(rank.topkIdx(), EXPERTS);
                    if (context.rank() == CULPRIT) {
                        layout = withoutFirstDestination(context, layout);
                    }
                    DispatchRequest request = rank.request().layout(layout).build();
                    requireRouting(() -> context.buffer().dispatch(request).event().synchronize());
                    rank.roundTrip();
                });
    }

    private static DispatchLayout withoutFirstDestination(
            RankContext context, DispatchLayout layout) {
        Tensor mask = context.download(layout.isTokenInRank());
        for (long rank = 0; rank < mask.size(1); rank++) {
            if (mask.getLong(0, rank) == 1) {
                mask.setLong(0, 0, rank);
                break;
            }
        }
        return new DispatchLayout(
                layout.numTokensPerRank(),
                layout.numTokensPerRdmaRank(),
                layout.numTokensPerExpert(),
                context.upload(mask),
                layout.event());
    }

    @ParameterizedTest
    @CsvSource({"1, 4, false", "2, 2, false", "1, 4, true", "2, 2, true"})
    public void moreThanFits(int nodes, int ranksPerNode, boolean worstCase) {
        NormalWorld large = NormalMisuses.world(4);
        NormalWorld small = NormalWorld.bf16(RoutingSpec.of(4, 1, EXPERTS, 4), large.hidden());
        int room = 7;
        NormalLimits all = NormalMisuses.LIMITS;
        NormalLimits tight =
                new NormalLimits(
                        all.maxTokens(),
                        all.hidden(),
                        all.maxTopk(),
                        all.maxExperts(),
                        worstCase ? 0 : room);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(tight),
                context -> {
                    NormalRank rank = new NormalRank(context, large);
                    DispatchRequest request =
                            rank.request().numWorstTokens(worstCase ? room : 0).build();
                    for (int i = 0; i < 2; i++) {
                        CapacityExceededException error =
                                catchThrowableOfType(
                                        CapacityExceededException.class,
                                        () ->
                                                context.buffer()
                                                        .dispatch(request)
                                                        .event()
                                                        .synchronize());
                        assertThat(error).as("an exception on every rank").isNotNull();
                        assertThat(error.capacity()).isEqualTo(room);
                        assertThat(error.needed())
                                .isEqualTo(large.oracle().rows(error.rank()).size())
                                .isGreaterThan(room);
                    }
                    new NormalRank(context, small).roundTrip();
                });
    }
}
