package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.RoutingSpec;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Rows that do not simply come as they were: expanded, FP8. */
class HostNormalRowsTest {
    private static final int MAX_TOKENS = 40;

    private static RoutingSpec spec(int numRanks, int numExperts, int numTopk) {
        return RoutingSpec.of(numRanks, MAX_TOKENS, numExperts, numTopk).ragged();
    }

    private static NormalLimits limits(int numTopk, int numExperts) {
        return NormalLimits.of(MAX_TOKENS, 256, numTopk, numExperts);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 2", "2, 2", "2, 4"})
    void expandedRowsAreGroupedAlignedAndSummed(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(4, 3 * numRanks));
        RoutingSpec spec = spec(numRanks, 3 * numRanks, 4);
        List<NormalWorld> worlds =
                IntStream.range(0, 4)
                        .mapToObj(seed -> NormalWorld.bf16(spec.withSeed(seed), 136))
                        .toList();
        int worst = 4 * MAX_TOKENS * numRanks + 8 * 3;
        group.run(
                rank -> {
                    for (NormalWorld world : worlds) {
                        NormalDispatchCheck exact = world.check().expanded(8);
                        expanded(rank, world, exact, 0);
                        expanded(rank, world, exact.worstCase(worst), worst);
                    }
                });
    }

    private static void expanded(
            Rank rank, NormalWorld world, NormalDispatchCheck check, int worst) {
        Tensor outputs = world.outputs(check).get(rank.rank());
        DispatchResult got =
                rank.dispatch(
                        rank.plan(world).expanded(true).expertAlignment(8).numWorstTokens(worst));
        rank.verify(check, got);
        rank.combine(world, check, got.handle(), outputs);
        Tokens tokens = world.tokens().get(rank.rank());
        DispatchResult cached =
                rank.dispatch(DispatchPlan.builder(tokens.x()).cached(got.handle()));
        rank.verify(check.withoutTopk(), cached);
        rank.combine(world, check, got.handle(), outputs);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 4", "2, 2"})
    void fp8RowsTravelWithStridedScalesAndWorstCaseCounts(int numNodes, int numNvlRanks)
            throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(2, 2 * numRanks));
        RoutingSpec spec = spec(numRanks, 2 * numRanks, 2).withSeed(11);
        NormalWorld world = NormalWorld.of(spec, 256, DType.FP8_E4M3);
        int worst = MAX_TOKENS * numRanks;
        group.run(
                rank -> {
                    Tokens tokens = world.tokens().get(rank.rank());
                    Tensor idx = world.routing().topkIdxTensor(rank.rank());
                    Tensor scales = HostTensors.columnMajor(tokens.scales());
                    DispatchPlan plan =
                            DispatchPlan.builder(tokens.x(), scales)
                                    .topk(idx, null, 2 * numRanks)
                                    .numWorstTokens(worst)
                                    .build();
                    rank.verify(
                            world.check().withoutWeights().worstCase(worst), rank.dispatch(plan));
                });
    }
}
