package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.CombineRequest;
import io.deepep.DType;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.HostTensors;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks that disagree about what they are doing all learn it, after which the buffer still works.
 * Part of {@link BadInputConformance}.
 */
public abstract class AgreementConformance extends RoutingErrorConformance {
    static void requireMismatch(ThrowingCallable call, String... mentions) {
        RankMismatchException error = catchThrowableOfType(RankMismatchException.class, call);
        assertThat(error).as("a RankMismatchException on every rank").isNotNull();
        assertThat(error).hasMessageContainingAll(mentions);
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void differentExperts(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor nowhere =
                            context.upload(
                                    HostTensors.poison(HostTensors.allocate(DType.I64, 10, 4)));
                    int experts = context.rank() == CULPRIT ? 8 : EXPERTS;
                    DispatchRequest request = rank.bare().topk(nowhere, null, experts).build();
                    requireMismatch(
                            () -> context.buffer().dispatch(request).event().synchronize(),
                            "xperts",
                            "8",
                            "16");
                    rank.roundTrip();
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void differentHiddenSizes(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor narrow = context.upload(HostTensors.allocate(DType.BF16, 10, 64));
                    DispatchRequest request =
                            DispatchRequest.builder(context.rank() == CULPRIT ? narrow : rank.x())
                                    .topk(rank.topkIdx(), rank.weights(), EXPERTS)
                                    .build();
                    requireMismatch(
                            () -> context.buffer().dispatch(request).event().synchronize(),
                            "hidden",
                            "64",
                            "128");
                    rank.roundTrip();
                });
    }

    /** One rank combines while the others dispatch. */
    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void differentOperations(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchResult result = rank.dispatch(rank.request(), world.check());
                    CombineRequest combine =
                            CombineRequest.builder(rank.outputs(world.check()), result.handle())
                                    .build();
                    DispatchRequest dispatch = rank.request().build();
                    requireMismatch(
                            () -> {
                                if (context.rank() == CULPRIT) {
                                    context.buffer().combine(combine).event().synchronize();
                                } else {
                                    context.buffer().dispatch(dispatch).event().synchronize();
                                }
                            },
                            "combine",
                            "dispatch");
                    rank.roundTrip();
                });
    }
}
