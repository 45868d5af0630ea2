package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
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
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import java.util.IdentityHashMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What the host does not see when it enqueues a call: that the dispatch before it fails, that a
 * replayed graph has taken the memory of an ordinary one, or that a capture was given up. No result
 * is silently another one's, and the next calls work. For backends that can record.
 */
@BackendSuite(recording = true)
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

    /**
     * Dispatches, or pairs of both calls, of the same exchange, and what they are recorded from.
     */
    private static final class Replayed {
        final LowLatencyRank rank;
        final Buffer buffer;
        final Stream stream;
        final LowLatencyDispatchPlan plan;
        final boolean hook;
        final IdentityHashMap<LowLatencyHandle, LowLatencyCombinePlan> homes =
                new IdentityHashMap<>();
        LowLatencyDispatchResult received;
        LowLatencyCombineResult home;

        Replayed(LowLatencyRank rank, boolean hook) {
            this.rank = rank;
            this.hook = hook;
            this.buffer = rank.context().buffer();
            this.stream = buffer.communicationStream();
            this.plan = rank.plan(BF16).receiveHook(hook).build();
        }

        void send() {
            received = buffer.lowLatencyDispatch(plan, CallOptions.sync().on(stream));
        }

        void dispatch() {
            send();
            receive(received.receiveHook());
        }

        void pair() {
            dispatch();
            sendHome();
            receive(home.receiveHook());
        }

        void sendHome() {
            home =
                    buffer.lowLatencyCombine(
                            homes.computeIfAbsent(
                                    received.handle(),
                                    handle -> rank.home(handle).receiveHook(hook).build()),
                            CallOptions.sync().on(stream));
        }

        void verify() {
            rank.verify(received, BF16);
            rank.verify(home);
        }

        private static void receive(Runnable receiveHook) {
            if (receiveHook != null) {
                receiveHook.run();
            }
        }

        /** Records calls that have been prepared for either bank. */
        Recording record(Runnable calls) {
            calls.run();
            calls.run();
            rank.verify(received, BF16);
            Recording recording = rank.context().backend().record(stream, calls);
            rank.context().meet();
            return recording;
        }
    }

    /** The replay's dispatch takes the bank of an ordinary one, or the other bank. */
    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "true, true"})
    public void replayBeforeTheCombine(boolean sameBank, boolean hook, RankContext context) {
        LowLatencyRank rank = shape().rank(context, 71);
        Replayed replayed = new Replayed(shape().rank(context, 72), hook);
        try (Recording graph = replayed.record(replayed::dispatch)) {
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
        Replayed replayed = new Replayed(shape().rank(context, 72), hook);
        LowLatencyDispatchPlan plan = rank.plan(BF16).receiveHook(true).build();
        try (Recording graph = replayed.record(replayed::dispatch)) {
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
        Replayed replayed = new Replayed(shape().rank(context, 72), hook);
        try (Recording graph = replayed.record(replayed::pair)) {
            if (another) {
                rank.roundTrip(BF16);
            }
            LowLatencyCombineResult home = rank.sendHome(rank.dispatch(BF16).handle());
            graph.replay();
            home.receiveHook().run();
            rank.verify(home);
            replayed.rank.verify(replayed.home);
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
        Replayed calls = new Replayed(shape().rank(context, 72), true);
        calls.pair();
        calls.pair();
        for (int round = 0; round < 3; round++) {
            requireRefused(
                    IllegalStateException.class,
                    "failed",
                    () ->
                            backend.record(
                                    calls.stream,
                                    () -> {
                                        beginCall(calls, ofCombine);
                                        throw new IllegalStateException("the capture failed");
                                    }));
            Runnable stale = ofCombine ? calls.home.receiveHook() : calls.received.receiveHook();
            if (captureAgain) {
                Runnable whole = ofCombine ? calls::pair : calls::dispatch;
                try (Recording graph = backend.record(calls.stream, whole)) {
                    context.meet();
                    graph.replay();
                    calls.rank.verify(calls.received, BF16);
                }
            } else if (round > 0) {
                requireRefused(IllegalStateException.class, "nothing to receive", stale::run);
            }
            calls.pair();
            calls.verify();
        }
        shape().rank(context, 71).roundTrip(BF16);
    }

    private static void beginCall(Replayed calls, boolean combine) {
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
        Replayed calls = new Replayed(shape().rank(context, 72), true);
        for (int round = 0; round < 3; round++) {
            calls.pair();
            beginCall(calls, ofCombine);
            Runnable hook = ofCombine ? calls.home.receiveHook() : calls.received.receiveHook();
            requireRefused(
                    IllegalStateException.class,
                    "before the capture",
                    () -> backend.record(calls.stream, hook));
            hook.run();
            if (!ofCombine) {
                calls.sendHome();
                calls.home.receiveHook().run();
            }
            calls.verify();
        }
    }

    private static void goesOn(LowLatencyRank rank, Recording graph, Replayed replayed) {
        for (int round = 0; round < 3; round++) {
            graph.replay();
            replayed.received.event().synchronize();
            rank.roundTrip(BF16);
        }
    }
}
