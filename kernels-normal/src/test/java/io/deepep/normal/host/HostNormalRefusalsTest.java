package io.deepep.normal.host;

import static io.deepep.normal.host.GoodCalls.HIDDEN;
import static io.deepep.normal.host.GoodCalls.NUM_TOPK;
import static io.deepep.normal.host.GoodCalls.expectWorks;
import static io.deepep.normal.host.GoodCalls.limits;
import static io.deepep.normal.host.GoodCalls.plan;
import static io.deepep.normal.host.GoodCalls.topkIdx;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.RankFailedException;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import org.junit.jupiter.api.Test;

/** What is refused before anything starts. */
class HostNormalRefusalsTest {
    /** As many tokens that all select expert 0. */
    private static Tensor experts(int numTokens) {
        return HostTensors.allocate(DType.I64, numTokens, NUM_TOPK);
    }

    @Test
    void plansThatDoNotFitAreRefusedBeforeAnythingStarts() throws Exception {
        RankGroup group = RankGroup.of(1, 2, limits());
        group.run(
                rank -> {
                    DispatchResult got = rank.dispatch(plan(rank.rank(), 2, 4));
                    refuse(
                            rank,
                            plan(rank.rank(), 2, 5),
                            "numExperts=5 is not a multiple of numRanks=2");
                    refuse(
                            rank,
                            plan(rank.rank(), 2, 18),
                            "numExperts=18 is not in [1, NormalLimits.maxExperts=16]");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(2, HIDDEN), topkIdx(0, 2))
                                    .topk(topkIdx(0, 2), null, 4),
                            "scales are given but x is BF16");
                    refuse(
                            rank,
                            plan(rank.rank(), 2, 4).expertAlignment(0),
                            "expertAlignment=0 is not in [1, 65536]");
                    refuse(
                            rank,
                            plan(rank.rank(), 2, 4).numWorstTokens(99),
                            "numWorstTokens=99 exceeds the buffer's 12 rows");
                    refuse(
                            rank,
                            plan(rank.rank(), 2, 4).config(new Config(8, 2, 4)),
                            "numSms=8 exceeds the 6");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(7, HIDDEN)).topk(experts(7), null, 4),
                            "x has 7 tokens, more than NormalLimits.maxTokens=6");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(2, 60)).topk(experts(2), null, 4),
                            "hidden=60 is not a positive multiple of 8");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(2, 72)).topk(experts(2), null, 4),
                            "hidden=72 exceeds NormalLimits.hidden=64");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(2, HIDDEN)).cached(got.handle()),
                            "the handle is of a dispatch of [6, 64]");
                    refuse(
                            rank,
                            DispatchPlan.builder(tokens(6, HIDDEN))
                                    .cached(got.handle())
                                    .expertAlignment(8),
                            "expertAlignment=8 but the handle is of a dispatch with"
                                    + " expertAlignment=1; leave it out");
                    refuse(
                            rank,
                            CombinePlan.builder(tokens(1, HIDDEN), got.handle()),
                            "x is BF16[1, 64]");
                    refuse(
                            rank,
                            CombinePlan.builder(got.recvX(), got.handle()).bias(tokens(5, HIDDEN)),
                            "bias0 is BF16[5, 64]");
                    expectWorks(rank, 2);
                });
    }

    /** On one node it is allowed. */
    @Test
    void aChannelTakesTwoMultiprocessors() throws Exception {
        RankGroup group = RankGroup.of(2, 1, limits());
        group.run(
                rank ->
                        refuse(
                                rank,
                                plan(rank.rank(), 2, 4).numSms(1),
                                "numSms=1 is for one node, but the group has 2; give at least 2"));
    }

    /**
     * Also by a rank that has received nothing: those that have rows refuse them, and do not come.
     */
    @Test
    void rowsThatLieWhereTheyAreToBeSummed() throws Exception {
        RankGroup group = RankGroup.of(1, 2, limits());
        group.run(
                rank -> {
                    Tensor x = tokens(2, HIDDEN);
                    Tensor topkIdx = experts(2);
                    for (int token = 0; token < 2; token++) {
                        for (int k = 1; k < NUM_TOPK; k++) {
                            topkIdx.setLong(-1, token, k);
                        }
                    }
                    DispatchPlan.Builder plan = DispatchPlan.builder(x).topk(topkIdx, null, 4);
                    Tensor region = rank.kernels().combineBuffer(rank.dispatch(plan).handle());
                    DispatchResult got = rank.dispatch(plan.expanded(true));
                    refuse(rank, CombinePlan.builder(region, got.handle()), "combine region");
                });
    }

    private static Tensor tokens(int numTokens, int hidden) {
        return HostTensors.allocate(DType.BF16, numTokens, hidden);
    }

    private static void refuse(Rank rank, DispatchPlan.Builder plan, String message) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rank.prepare(plan))
                .withMessageContaining(message);
    }

    private static void refuse(Rank rank, CombinePlan.Builder plan, String message) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rank.prepare(plan))
                .withMessageContaining(message);
    }

    @Test
    void aHandleOfAnotherBuffer() throws Exception {
        DispatchResult[] foreign = new DispatchResult[1];
        RankGroup group = RankGroup.of(1, 1, limits());
        group.run(rank -> foreign[0] = rank.dispatch(plan(0, 1, 2)));
        CombinePlan.Builder plan = CombinePlan.builder(tokens(6, HIDDEN), foreign[0].handle());
        assertThatThrownBy(() -> group.run(rank -> rank.prepare(plan)))
                .isInstanceOf(RankFailedException.class)
                .hasMessageContaining("the handle comes from another buffer");
    }
}
