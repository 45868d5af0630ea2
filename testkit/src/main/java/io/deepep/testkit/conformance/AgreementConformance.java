package io.deepep.testkit.conformance;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;

import io.deepep.CombineRequest;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks that disagree about what they are doing all learn it, after which the buffer still works.
 * Part of {@link BadInputConformance}.
 */
public abstract class AgreementConformance extends RoutingErrorConformance {
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

    /** Ranks use the routings of two dispatches that delivered the same. */
    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void differentHandles(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    NormalDispatchCheck check = world.check();
                    DispatchHandle first = rank.dispatch(rank.request(), check).handle();
                    DispatchHandle second = rank.dispatch(rank.request(), check).handle();
                    DispatchHandle mixed = context.rank() == CULPRIT ? first : second;
                    requireMismatch(
                            () -> rank.combine(mixed, check), "dispatch of the handle", "rank 1");
                    DispatchRequest cached = rank.bare().cached(mixed).build();
                    requireMismatch(
                            () -> context.buffer().dispatch(cached).event().synchronize(),
                            "dispatch of the handle",
                            "rank 1");
                    rank.combine(first, check);
                    rank.combine(second, check);
                });
    }
}
