package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Graph;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.DeepEpException;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What the host does not see when it enqueues a call: that the dispatch before it fails, that a
 * replayed graph has taken the memory of an ordinary one, or that a capture was given up. No result
 * is silently another one's, and the next calls work. For backends that have graphs.
 */
@BackendSuite(graphs = true)
public record LowLatencyUnseenConformance(TestBackend backend) implements RankGroup {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;
    private static final String FAILED = "the dispatch of the handle failed";
    private static final String REPLAYED = "a graph replayed since";

    private LowLatencyShape shape() {
        return LowLatencyShape.of(Ranks.four(backend), 12, 256, 6, 8);
    }

    @Override
    public void limit(Buffer.Builder builder) {
        shape().limit(builder);
    }

    /** Nobody has waited for the dispatch, so the host cannot refuse its combine. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void combineOfAFailedDispatch(boolean otherFormat, RankContext context) {
        LowLatencyRank rank = shape().rank(context, 71);
        Buffer buffer = context.buffer();
        Stream stream = buffer.communicationStream();
        CallOptions options = CallOptions.sync().on(stream);
        Tensor idx = context.isCulprit() && !otherFormat ? crowded(context, rank) : rank.topkIdx();
        LowLatencyDispatchPlan plan =
                LowLatencyDispatchPlan.builder(rank.x(), idx)
                        .format(context.isCulprit() && otherFormat ? LowLatencyFormat.FP8 : BF16)
                        .build();
        for (int round = 0; round < 2; round++) {
            LowLatencyDispatchResult failed = buffer.lowLatencyDispatch(plan, options);
            LowLatencyCombinePlan home =
                    LowLatencyCombinePlan.builder(
                                    rank.outputs(), idx, rank.weights(), failed.handle())
                            .build();
            LowLatencyCombineResult sum = buffer.lowLatencyCombine(home, options);
            requireRouting(0, sum.event()::synchronize, FAILED);
            assertThatThrownBy(failed.event()::synchronize).isInstanceOf(DeepEpException.class);
            requireRouting(0, () -> rank.call(home), FAILED);
            rank.roundTrip(BF16);
        }
    }

    /** All of a rank's selections name one expert, which has not so many rows. */
    private static Tensor crowded(RankContext context, LowLatencyRank rank) {
        return context.upload(HostTensors.allocate(rank.topkIdx().dtype(), rank.topkIdx().shape()));
    }

    /** Calls in the order of the buffer's stream. */
    private LowLatencyPairs pairs(RankContext context, boolean hook) {
        CallOptions options = CallOptions.sync().on(context.buffer().communicationStream());
        return new LowLatencyPairs(shape().rank(context, 72), BF16, options, hook);
    }

    /** Captures calls of {@code pairs} that have been prepared for either bank. */
    private Graph capture(RankContext context, LowLatencyPairs pairs, Runnable calls) {
        calls.run();
        calls.run();
        pairs.verifyReceived();
        Graph graph = capture(context, calls);
        context.meet();
        return graph;
    }

    private Graph capture(RankContext context, Runnable calls) {
        return Graph.capture(context.buffer().communicationStream(), calls);
    }

    /** The replay's dispatch takes the bank of an ordinary one, or the other bank. */
    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "true, true"})
    public void replayBeforeTheCombine(boolean sameBank, boolean hook, RankContext context) {
        LowLatencyRank rank = shape().rank(context, 71);
        LowLatencyPairs replayed = pairs(context, hook);
        try (Graph graph = capture(context, replayed, replayed::dispatch)) {
            if (sameBank) {
                rank.roundTrip(BF16);
            }
            LowLatencyHandle handle = rank.dispatch(BF16).handle();
            LowLatencyCombinePlan home = rank.home(handle).build();
            graph.replay();
            if (sameBank) {
                requireRouting(0, () -> rank.call(home), REPLAYED);
            } else {
                rank.combine(home);
            }
            goesOn(rank, graph, replayed);
        }
    }

    /** The same between the halves of an ordinary dispatch. */
    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "true, true"})
    public void replayBeforeAReceiveHook(boolean sameBank, boolean hook, RankContext context) {
        LowLatencyRank rank = shape().rank(context, 71);
        LowLatencyPairs replayed = pairs(context, hook);
        LowLatencyDispatchPlan plan = rank.plan(BF16).receiveHook(true).build();
        try (Graph graph = capture(context, replayed, replayed::dispatch)) {
            if (sameBank) {
                rank.roundTrip(BF16);
            }
            LowLatencyDispatchResult sent = context.buffer().lowLatencyDispatch(plan);
            graph.replay();
            if (sameBank) {
                requireRouting(context.rank(), sent.receiveHook()::run, REPLAYED);
                requireRouting(0, () -> rank.call(rank.home(sent.handle()).build()), FAILED);
            } else {
                sent.receiveHook().run();
                rank.verify(sent, BF16);
                rank.combine(sent.handle());
            }
            goesOn(rank, graph, replayed);
        }
    }

    /** A replayed combine, with the number of the ordinary one or the other number. */
    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "false, true", "true, true"})
    public void replayBeforeTheHookOfACombine(boolean another, boolean hook, RankContext context) {
        LowLatencyRank rank = shape().rank(context, 71);
        LowLatencyPairs replayed = pairs(context, hook);
        try (Graph graph = capture(context, replayed, replayed::enqueue)) {
            if (another) {
                rank.roundTrip(BF16);
            }
            LowLatencyCombineResult home = rank.sendHome(rank.dispatch(BF16).handle());
            graph.replay();
            home.receiveHook().run();
            rank.verify(home);
            replayed.verifyHome();
            goesOn(rank, graph, replayed);
        }
    }

    /**
     * A capture that fails between the halves of a call: that was never sent, so the same calls
     * work, at once and in the next capture.
     */
    @ParameterizedTest
    @CsvSource({"false, false", "false, true", "true, false", "true, true"})
    public void captureFailsBetweenHalves(
            boolean ofCombine, boolean captureAgain, RankContext context) {
        LowLatencyPairs calls = pairs(context, true);
        calls.enqueue();
        calls.enqueue();
        for (int round = 0; round < 3; round++) {
            requireRefused(
                    IllegalStateException.class,
                    "failed",
                    () ->
                            capture(
                                    context,
                                    () -> {
                                        beginCall(calls, ofCombine);
                                        throw new IllegalStateException("the capture failed");
                                    }));
            Runnable stale =
                    ofCombine ? calls.home().receiveHook() : calls.received().receiveHook();
            if (captureAgain) {
                Runnable whole = ofCombine ? calls::enqueue : calls::dispatch;
                try (Graph graph = capture(context, whole)) {
                    context.meet();
                    graph.replay();
                    calls.verifyReceived();
                }
            } else if (round > 0) {
                requireRefused(IllegalStateException.class, "nothing to receive", stale::run);
            }
            calls.enqueue();
            calls.verify();
        }
        shape().rank(context, 71).roundTrip(BF16);
    }

    private static void beginCall(LowLatencyPairs calls, boolean combine) {
        if (combine) {
            calls.dispatch();
            calls.sendHome();
        } else {
            calls.send();
        }
    }

    /**
     * A capture is not given the second half of an ordinary call, which each replay would repeat.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void hookOfAnOrdinaryCallInACapture(boolean ofCombine, RankContext context) {
        LowLatencyPairs calls = pairs(context, true);
        for (int round = 0; round < 3; round++) {
            calls.enqueue();
            beginCall(calls, ofCombine);
            Runnable hook = ofCombine ? calls.home().receiveHook() : calls.received().receiveHook();
            requireRefused(
                    IllegalStateException.class,
                    "before the capture",
                    () -> capture(context, hook));
            hook.run();
            if (!ofCombine) {
                calls.sendHome();
                calls.home().receiveHook().run();
            }
            calls.verify();
        }
    }

    private static void goesOn(LowLatencyRank rank, Graph graph, LowLatencyPairs replayed) {
        for (int round = 0; round < 3; round++) {
            graph.replay();
            replayed.received().event().synchronize();
            rank.roundTrip(BF16);
        }
    }
}
