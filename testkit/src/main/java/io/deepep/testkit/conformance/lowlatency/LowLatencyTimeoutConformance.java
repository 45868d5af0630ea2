package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.BRIEF;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;
import static io.deepep.testkit.conformance.Ranks.TIMEOUT;

import io.deepep.Buffer;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyPlan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.util.function.Consumer;

/** Time-outs of single calls, longer and shorter than those of their buffer; and of their start. */
@BackendSuite
@BesideOthers
public record LowLatencyTimeoutConformance(TestBackend backend) implements LowLatencySuite {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    private void run(
            int nodes, int ranksPerNode, Consumer<Buffer.Builder> options, Ranks.Body body) {
        shape(nodes, ranksPerNode).run(backend, options, body);
    }

    private void late(
            int nodes,
            int ranksPerNode,
            Consumer<Buffer.Builder> options,
            Consumer<LowLatencyPlan.Builder<?>> with) {
        run(
                nodes,
                ranksPerNode,
                builder -> options.accept(builder.timeout(BRIEF)),
                context -> withOneLate(context, with));
    }

    private static LowLatencyShape shape(int nodes, int ranksPerNode) {
        return new LowLatencyShape(nodes, ranksPerNode, 6, 128, 4, 2 * nodes * ranksPerNode);
    }

    private static LowLatencyRank rank(RankContext context) {
        int perNode = context.topology().numNvlRanks();
        return shape(context.topology().numRdmaRanks(), perNode).rank(context, 61);
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases({"1, 4", "2, 2"})
    public void longerThanTheBuffers(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, _ -> {}, plan -> plan.timeout(TIMEOUT));
    }

    private static void withOneLate(RankContext context, Consumer<LowLatencyPlan.Builder<?>> with) {
        LowLatencyRank rank = rank(context);
        for (boolean hooked : new boolean[] {false, true}) {
            LowLatencyDispatchPlan.Builder dispatch = rank.plan(BF16).receiveHook(hooked);
            with.accept(dispatch);
            beLate(context);
            LowLatencyHandle handle = rank.dispatch(dispatch.build()).handle();
            LowLatencyCombinePlan.Builder combine = rank.home(handle).receiveHook(hooked);
            with.accept(combine);
            beLate(context);
            rank.combine(combine);
        }
    }

    /** A rank that begins later than after the time-out, but within that of the start. */
    @Cases({"1, 4", "2, 2"})
    public void startsLate(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, builder -> builder.startTimeout(TIMEOUT), plan -> {});
    }

    /** The same where plans say it, and the ranks that are waited for in vain would be masked. */
    @Cases({"1, 4", "2, 2"})
    public void startsOfPlansAreLate(int nodes, int ranksPerNode) {
        late(
                nodes,
                ranksPerNode,
                builder -> builder.maskTimedOutRanks(true),
                plan -> plan.startTimeout(TIMEOUT));
    }

    /** Who stays away is named after the call's time-out, whatever the buffer's. */
    @Cases({"1, 4", "2, 2"})
    public void shorterThanTheBuffers(int nodes, int ranksPerNode) {
        withoutOne(nodes, ranksPerNode, plan -> plan.timeout(SHORT));
    }

    /** Who never begins is named after the start time-out, be the time-out shorter or longer. */
    @Cases({"1, 4", "2, 2"})
    public void neverStarts(int nodes, int ranksPerNode) {
        withoutOne(nodes, ranksPerNode, plan -> plan.startTimeout(SHORT));
        Duration shorter = SHORT.dividedBy(3);
        withoutOne(nodes, ranksPerNode, plan -> plan.timeout(shorter).startTimeout(SHORT));
    }

    private void withoutOne(int nodes, int ranksPerNode, Consumer<LowLatencyPlan.Builder<?>> with) {
        for (boolean combine : new boolean[] {false, true}) {
            for (boolean hooked : new boolean[] {false, true}) {
                run(
                        nodes,
                        ranksPerNode,
                        builder -> builder.timeout(Duration.ofHours(1)),
                        context -> withoutOne(context, combine, hooked, with));
            }
        }
    }

    private static void withoutOne(
            RankContext context,
            boolean combine,
            boolean hooked,
            Consumer<LowLatencyPlan.Builder<?>> with) {
        LowLatencyRank rank = rank(context);
        rank.roundTrip(BF16);
        LowLatencyHandle handle = combine ? rank.dispatch(BF16).handle() : null;
        stayAway(
                context,
                combine ? "low-latency combine" : "low-latency dispatch",
                () -> {
                    if (combine) {
                        LowLatencyCombinePlan.Builder plan = rank.home(handle).receiveHook(hooked);
                        with.accept(plan);
                        rank.call(plan.build());
                    } else {
                        LowLatencyDispatchPlan.Builder plan = rank.plan(BF16).receiveHook(hooked);
                        with.accept(plan);
                        rank.call(plan.build());
                    }
                });
    }
}
