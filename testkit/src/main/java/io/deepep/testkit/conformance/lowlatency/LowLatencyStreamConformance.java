package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Low-latency calls in the order of a stream: the buffer's own or the engine's, with nothing
 * between them but that order.
 */
@BackendSuite
public record LowLatencyStreamConformance(TestBackend backend) implements RankGroup {
    private static final LowLatencyFormat FORMAT = LowLatencyFormat.FP8;
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 12, 256, 6, 8);

    @Override
    public void limit(Buffer.Builder builder) {
        SHAPE.limit(builder);
    }

    /** Several pairs that nobody waits for; the tensors of the last two dispatches are alive. */
    @Cases(from = "few")
    public void chainOnTheBuffersStream(LowLatencyShape shape, RankContext context) {
        chain(shape.raggedRank(context));
    }

    private static void chain(LowLatencyRank rank) {
        Buffer buffer = rank.context().buffer();
        CallOptions options = CallOptions.sync().on(buffer.communicationStream());
        LowLatencyDispatchPlan plan = rank.plan(FORMAT).build();
        for (int round = 0; round < 3; round++) {
            LowLatencyDispatchResult first = buffer.lowLatencyDispatch(plan, options);
            buffer.lowLatencyCombine(rank.home(first.handle()).build(), options);
            LowLatencyDispatchResult second =
                    buffer.lowLatencyDispatch(rank.plan(FORMAT).build(), options);
            LowLatencyCombineResult home =
                    buffer.lowLatencyCombine(rank.home(second.handle()).build(), options);
            rank.verify(home);
            assertThat(second.event().isDone()).isTrue();
            rank.verify(second, FORMAT);
            rank.verify(first, FORMAT);
        }
    }

    /** One thread makes the calls of all ranks of the process, and waits for none in between. */
    @Cases(from = "few")
    public void oneThreadForAllRanks(LowLatencyShape shape, RankContext context) {
        LowLatencyRank own = shape.raggedRank(context);
        List<LowLatencyRank> ranks = context.shared("ranks", _ -> new CopyOnWriteArrayList<>());
        ranks.add(own);
        context.meet();
        for (int round = 0; round < 6 && ranks.getFirst() == own; round++) {
            boolean hook = round % 2 == 1;
            List<LowLatencyDispatchResult> received =
                    ranks.stream().map(rank -> dispatchBehind(rank, hook)).toList();
            received.forEach(result -> ExchangeRank.receive(result.receiveHook()));
            List<LowLatencyCombineResult> combined = new ArrayList<>();
            for (int i = 0; i < ranks.size(); i++) {
                combined.add(combineBehind(ranks.get(i), received.get(i).handle(), hook));
            }
            combined.forEach(result -> ExchangeRank.receive(result.receiveHook()));
            for (int i = 0; i < ranks.size(); i++) {
                ranks.get(i).verify(combined.get(i));
                ranks.get(i).verify(received.get(i), FORMAT);
            }
        }
        context.meet();
        own.roundTrip();
    }

    private static LowLatencyDispatchResult dispatchBehind(LowLatencyRank rank, boolean hook) {
        Buffer buffer = rank.context().buffer();
        return buffer.lowLatencyDispatch(
                rank.plan(FORMAT).receiveHook(hook).build(), CallOptions.async());
    }

    private static LowLatencyCombineResult combineBehind(
            LowLatencyRank rank, LowLatencyHandle handle, boolean hook) {
        Buffer buffer = rank.context().buffer();
        return buffer.lowLatencyCombine(
                rank.home(handle).receiveHook(hook).build(), CallOptions.async());
    }

    /** The engine's stream makes the tokens, runs the calls and uses what they give. */
    @Cases({"1, 4, false", "1, 4, true"})
    public void callsOnTheEnginesStream(int nodes, int ranksPerNode, boolean hook) {
        LowLatencyWorld world = SHAPE.world(7);
        Ranks.runBare(
                backend(),
                SHAPE.topology(),
                communicator -> {
                    Device device = backend().device(communicator.rank(), communicator.size());
                    try (TestStream stream = backend.newStream(device);
                            Buffer buffer =
                                    Ranks.builder(backend(), communicator, SHAPE.topology())
                                            .lowLatency(SHAPE.limits())
                                            .communicationStream(stream.stream())
                                            .open()) {
                        LowLatencyRank rank =
                                new LowLatencyRank(
                                        new RankContext(backend(), communicator, buffer), world);
                        communicator.barrier(Ranks.TIMEOUT);
                        for (int i = 0; i < 3; i++) {
                            onTheEnginesStream(rank, stream, hook);
                        }
                        chain(rank);
                        assertThat(buffer.communicationStream().device()).isEqualTo(device);
                    }
                });
    }

    private static void onTheEnginesStream(LowLatencyRank rank, TestStream stream, boolean hook) {
        RankContext context = rank.context();
        Buffer buffer = context.buffer();
        CallOptions options = CallOptions.sync().on(stream.stream());
        Tensor x = context.poisoned(rank.x().dtype(), rank.x().shape());
        Tensor seen = context.poisoned(DType.BF16, rank.x().shape());
        stream.copy(rank.x(), x);
        LowLatencyDispatchResult received =
                buffer.lowLatencyDispatch(
                        LowLatencyDispatchPlan.builder(x, rank.topkIdx())
                                .format(FORMAT)
                                .receiveHook(hook)
                                .build(),
                        options);
        ExchangeRank.receive(received.receiveHook());
        LowLatencyCombinePlan home = rank.home(received.handle()).receiveHook(hook).build();
        LowLatencyCombineResult combined = buffer.lowLatencyCombine(home, options);
        ExchangeRank.receive(combined.receiveHook());
        stream.copy(combined.x(), seen);
        stream.stream().synchronize();
        rank.verify(received, FORMAT);
        rank.verify(new LowLatencyCombineResult(seen, combined.event(), null));
    }

    /** What went wrong is told when the event is asked for, and the ranks go on in step. */
    @Cases("1, 4")
    public void aBadRoutingInTheChain(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 7);
        Buffer buffer = context.buffer();
        CallOptions options = CallOptions.sync().on(buffer.communicationStream());
        Tensor good = context.download(rank.topkIdx());
        Tensor idx = context.download(context.spoiled(rank.topkIdx(), SHAPE.experts(), 3, 1));
        LowLatencyDispatchPlan plan = rank.plan(FORMAT).build();
        for (int i = 0; i < 2; i++) {
            context.backend().write(idx, rank.topkIdx());
            requireRouting(
                    () -> buffer.lowLatencyDispatch(plan, options).event().synchronize(),
                    "topkIdx[3][1]=" + SHAPE.experts());
            context.backend().write(good, rank.topkIdx());
            chain(rank);
        }
    }

    /** A stream of another device is refused on all ranks before they wait for each other. */
    @Cases("1, 2")
    public void aStreamOfAnotherDevice() {
        Ranks.runBare(
                backend(),
                Ranks.topology(1, 2),
                communicator -> {
                    Device other = backend().device(0, 1).isHost() ? Device.cuda(0) : Device.host();
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, Ranks.topology(1, 2))
                                    .lowLatency(SHAPE.limits())
                                    .communicationStream(new Elsewhere(other));
                    requireIllegal(builder::open, "communicationStream runs on " + other);
                });
    }

    /** A stream that nothing can be run on. */
    private record Elsewhere(Device device) implements Stream {
        @Override
        public Event record() {
            return Event.completed();
        }

        @Override
        public void waitFor(Event event) {
            event.synchronize();
        }

        @Override
        public void synchronize() {
            // Nothing runs here.
        }
    }
}
