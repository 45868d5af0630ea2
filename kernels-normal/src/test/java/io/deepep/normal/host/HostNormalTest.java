package io.deepep.normal.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.Operation;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.RoutingSpec;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostNormalTest {
    private static final int HIDDEN = 136;
    private static final int MAX_TOKENS = 40;

    private static NormalLimits limits(int numTopk, int numExperts) {
        return NormalLimits.of(MAX_TOKENS, HIDDEN + 120, numTopk, numExperts);
    }

    private static NormalWorld world(int numRanks, int numExperts, int numTopk, int seed) {
        RoutingSpec spec = RoutingSpec.of(numRanks, MAX_TOKENS, numExperts, numTopk).ragged();
        return NormalWorld.bf16(spec.withSeed(seed), HIDDEN);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 1", "1, 2", "1, 8", "2, 1", "2, 2", "3, 4", "2, 8"})
    void tokensGoOutAndComeHome(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(5, 6 * numRanks));
        List<NormalWorld> worlds =
                IntStream.range(0, 6)
                        .mapToObj(seed -> world(numRanks, 6 * numRanks, 1 + seed % 5, seed))
                        .toList();
        group.run(rank -> worlds.forEach(world -> roundTrip(world, rank)));
    }

    private static void roundTrip(NormalWorld world, Rank rank) {
        NormalDispatchCheck check = world.check();
        Tensor outputs = world.outputs(check).get(rank.rank());
        DispatchPlan plan = rank.plan(world).build();
        Operation<DispatchResult> operation = rank.kernels().prepareDispatch(plan);
        for (int run = 0; run < 2; run++) {
            DispatchResult got = Rank.run(operation);
            rank.verify(check, got);
            rank.combine(world, check, got.handle(), outputs);
            Tensor filled = rank.kernels().combineBuffer(got.handle());
            HostTensors.copy(outputs, filled);
            rank.combine(world, check, got.handle(), filled);
            DispatchResult cached =
                    rank.dispatch(
                            DispatchPlan.builder(plan.x())
                                    .cached(got.handle())
                                    .receive(DispatchPlan.Receive.COPY));
            rank.verify(check.withoutTopk(), cached);
            rank.combine(world, check, cached.handle(), outputs);
        }
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 4", "2, 3"})
    void sumsHaveTheSameBitsOnEveryRun(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(4, numRanks));
        NormalWorld world = world(numRanks, numRanks, 4, 5);
        group.run(
                rank -> {
                    DispatchResult got = rank.dispatch(rank.plan(world));
                    Tensor x = HostTensors.allocate(DType.BF16, got.numRecvTokens(), HIDDEN);
                    Random random = new Random(rank.rank());
                    for (int row = 0; row < got.numRecvTokens(); row++) {
                        for (int h = 0; h < HIDDEN; h++) {
                            x.setFloat(
                                    (float)
                                            (random.nextGaussian()
                                                    * Math.pow(10, random.nextInt(5))),
                                    row,
                                    h);
                        }
                    }
                    MemorySegment first = null;
                    for (int run = 0; run < 20; run++) {
                        Tensor home = rank.combine(CombinePlan.builder(x, got.handle())).x();
                        first = first == null ? home.segment() : first;
                        assertThat(first.mismatch(home.segment())).isEqualTo(-1);
                    }
                });
    }

    @Test
    void aWorstCaseResultIsKnownBeforeItsRunAndReused() throws Exception {
        RankGroup group = RankGroup.of(2, 2, limits(3, 8));
        NormalWorld world = world(4, 8, 3, 3);
        NormalDispatchCheck check = world.check().worstCase(4 * MAX_TOKENS);
        List<Tensor> outputs = world.outputs(check);
        group.run(
                rank -> {
                    Operation<DispatchResult> operation =
                            rank.prepare(
                                    rank.plan(world)
                                            .numWorstTokens(4 * MAX_TOKENS)
                                            .receive(DispatchPlan.Receive.COPY));
                    DispatchResult before = operation.result(Event.completed(), null);
                    Tensor x = outputs.get(rank.rank());
                    Operation<CombineResult> home =
                            rank.prepare(CombinePlan.builder(x, before.handle()));
                    assertThat(Rank.run(operation)).isSameAs(before);
                    rank.verify(check, before);
                    CombineResult sums = Rank.run(home);
                    assertThat(Rank.run(operation)).isSameAs(before);
                    assertThat(Rank.run(home)).isSameAs(sums);
                    NormalCombineOracle.of(check, 2)
                            .check(rank.rank(), CombineFormat.BF16, outputs, List.of(), sums.x());
                });
    }
}
