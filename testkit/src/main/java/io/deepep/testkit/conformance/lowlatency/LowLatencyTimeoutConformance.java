package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;

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
import java.util.concurrent.locks.LockSupport;

/** Time-outs of single calls, longer and shorter than those of their buffer. */
@BackendSuite
public record LowLatencyTimeoutConformance(TestBackend backend) implements LowLatencySuite {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    /** Enough to open a buffer on a busy machine. */
    private static final Duration BUFFERS = Duration.ofSeconds(1);

    private static final Duration LATE = BUFFERS.multipliedBy(2);

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

    private static void beLate(RankContext context) {
        if (context.isCulprit()) {
            LockSupport.parkNanos(LATE.toNanos());
        }
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void longerThanTheBuffers(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                BUFFERS,
                context -> {
                    LowLatencyRank rank = rank(context);
                    for (boolean hooked : new boolean[] {false, true}) {
                        context.meet();
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
                        context.meet();
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
                        context -> stayAway(context, combine, hooked));
            }
        }
    }

    private static void stayAway(RankContext context, boolean combine, boolean hooked) {
        LowLatencyRank rank = rank(context);
        rank.roundTrip(BF16);
        LowLatencyHandle handle = combine ? rank.dispatch(BF16).handle() : null;
        context.meet();
        if (!context.isCulprit()) {
            requireTimeout(
                    context.rank(),
                    combine ? "low-latency combine" : "low-latency dispatch",
                    () -> {
                        if (combine) {
                            rank.call(
                                    rank.home(handle)
                                            .receiveHook(hooked)
                                            .timeout(Misbehaviour.SHORT)
                                            .build());
                        } else {
                            rank.call(
                                    rank.plan(BF16)
                                            .receiveHook(hooked)
                                            .timeout(Misbehaviour.SHORT)
                                            .build());
                        }
                    });
        }
        context.meet();
    }
}
