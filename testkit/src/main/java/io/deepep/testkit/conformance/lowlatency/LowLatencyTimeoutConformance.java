package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;

import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;

/** Time-outs of single calls, longer and shorter than those of their buffer. */
@BackendSuite
public record LowLatencyTimeoutConformance(TestBackend backend) implements LowLatencySuite {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    private void run(int nodes, int ranksPerNode, Duration timeout, Ranks.Body body) {
        LowLatencyShape shape = shape(nodes, ranksPerNode);
        Ranks.run(
                backend,
                shape.topology(),
                builder -> builder.lowLatency(shape.limits()).timeout(timeout),
                body);
    }

    private static LowLatencyShape shape(int nodes, int ranksPerNode) {
        return new LowLatencyShape(nodes, ranksPerNode, 6, 128, 4, 2 * nodes * ranksPerNode);
    }

    private static LowLatencyRank rank(RankContext context) {
        int perNode = context.topology().numNvlRanks();
        return shape(context.topology().numRdmaRanks(), perNode).rank(context, 61);
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void longerThanTheBuffers(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                Misbehaviour.BRIEF,
                context -> {
                    LowLatencyRank rank = rank(context);
                    for (boolean hooked : new boolean[] {false, true}) {
                        beLate(context);
                        LowLatencyDispatchResult sent =
                                context.buffer()
                                        .lowLatencyDispatch(
                                                rank.plan(BF16)
                                                        .receiveHook(hooked)
                                                        .timeout(Ranks.TIMEOUT)
                                                        .build());
                        receive(sent.receiveHook());
                        LowLatencyHandle handle = rank.verify(sent, BF16).handle();
                        beLate(context);
                        LowLatencyCombineResult back =
                                context.buffer()
                                        .lowLatencyCombine(
                                                rank.home(handle)
                                                        .receiveHook(hooked)
                                                        .timeout(Ranks.TIMEOUT)
                                                        .build());
                        receive(back.receiveHook());
                        rank.verify(back);
                    }
                });
    }

    private static void receive(Runnable hook) {
        if (hook != null) {
            hook.run();
        }
    }

    /** Who stays away is named after the call's time-out, whatever the buffer's. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void shorterThanTheBuffers(int nodes, int ranksPerNode) {
        for (boolean combine : new boolean[] {false, true}) {
            for (boolean hooked : new boolean[] {false, true}) {
                run(
                        nodes,
                        ranksPerNode,
                        Duration.ofHours(1),
                        context -> withoutOne(context, combine, hooked));
            }
        }
    }

    private static void withoutOne(RankContext context, boolean combine, boolean hooked) {
        LowLatencyRank rank = rank(context);
        rank.roundTrip(BF16);
        LowLatencyHandle handle = combine ? rank.dispatch(BF16).handle() : null;
        Duration timeout = Misbehaviour.SHORT;
        stayAway(
                context,
                combine ? "low-latency combine" : "low-latency dispatch",
                () -> {
                    if (combine) {
                        rank.call(rank.home(handle).receiveHook(hooked).timeout(timeout).build());
                    } else {
                        rank.call(rank.plan(BF16).receiveHook(hooked).timeout(timeout).build());
                    }
                });
    }
}
