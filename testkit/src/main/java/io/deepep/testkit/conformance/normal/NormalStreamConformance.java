package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The order of normal-mode calls against work of an engine's stream: inputs come into being on it
 * while the calls are already made, and results are used on it without anybody waiting.
 */
@BackendSuite
public record NormalStreamConformance(TestBackend backend) implements NormalMisuses.Group {
    private static final long HELD_MILLIS = 30;

    /** One rank, whose expert outputs are made on the stream of its engine. */
    private record Engine(NormalRank rank, Tensor outputs, Tensor made) {
        static Engine of(RankContext context, NormalShape shape) {
            NormalRank exact = shape.rank(context);
            NormalWorld world = exact.world();
            int rows = world.limits().recvCapacity(world.routing().numRanks());
            NormalRank rank = exact.expecting(world.check().worstCase(rows));
            Tensor outputs = context.poisoned(DType.BF16, rows, world.hidden());
            return new Engine(rank, outputs, rank.outputs());
        }

        Buffer buffer() {
            return rank.context().buffer();
        }

        DispatchResult dispatch(CallOptions options) {
            return buffer().dispatch(rank.plan().build(), options);
        }

        /** In worst-case mode, so that nobody waits for counts; tokens are still to come. */
        DispatchPlan plan(Tensor x) {
            return DispatchPlan.builder(x, rank.scales())
                    .topk(rank.topkIdx(), rank.weights(), rank.world().routing().numExperts())
                    .numWorstTokens(rank.check().worstRows())
                    .build();
        }
    }

    /** Makes the rank's stream while no rank waits for another. */
    private TestStream streamOf(RankContext context) {
        TestStream stream = backend.newStream(context.device());
        context.meet();
        return stream;
    }

    @Cases(from = "few")
    public void afterAnEvent(NormalShape shape, RankContext context) {
        Engine engine = Engine.of(context, shape);
        NormalRank rank = engine.rank();
        Tensor x = context.poisoned(rank.x().dtype(), rank.x().shape());
        Buffer buffer = context.buffer();
        try (TestStream stream = streamOf(context)) {
            Runnable release = stream.hold();
            stream.copy(rank.x(), x);
            Event tokens = Buffer.capture(stream.stream());
            DispatchResult result =
                    buffer.dispatch(engine.plan(x), CallOptions.async().after(tokens));
            stream.copy(engine.made(), engine.outputs());
            Event outputs = Buffer.capture(stream.stream());
            CombinePlan plan = CombinePlan.builder(engine.outputs(), result.handle()).build();
            CombineResult home = buffer.combine(plan, CallOptions.async().after(outputs));
            assertThat(tokens.isDone()).isFalse();
            release.run();
            rank.verify(result);
            rank.verify(home);
        }
    }

    /** The engine's stream waits for the calls, and they for it; the host need not. */
    @Cases(from = "few")
    public void onAStream(NormalShape shape, RankContext context) {
        Engine engine = Engine.of(context, shape);
        NormalRank rank = engine.rank();
        Tensor x = context.poisoned(rank.x().dtype(), rank.x().shape());
        Tensor seen = context.poisoned(DType.BF16, rank.x().size(0), shape.hidden());
        Buffer buffer = context.buffer();
        try (TestStream stream = streamOf(context)) {
            releaseLater(stream.hold());
            stream.copy(rank.x(), x);
            CallOptions options = CallOptions.sync().on(stream.stream());
            DispatchResult result = buffer.dispatch(engine.plan(x), options);
            stream.copy(engine.made(), engine.outputs());
            CombinePlan plan = CombinePlan.builder(engine.outputs(), result.handle()).build();
            CombineResult home = buffer.combine(plan, options);
            stream.copy(home.x(), seen);
            stream.stream().synchronize();
            rank.verify(result);
            rank.verify(new CombineResult(seen, null, home.event()));
        }
    }

    /** One thread makes the calls of all ranks of the process, and waits for none in between. */
    @Cases(from = "few")
    public void oneThreadForAllRanks(NormalShape shape, RankContext context) {
        Engine own = Engine.of(context, shape);
        List<Engine> engines = context.shared("engines", _ -> new CopyOnWriteArrayList<>());
        engines.add(own);
        context.meet();
        for (int round = 0; round < 3 && engines.getFirst().rank() == own.rank(); round++) {
            List<DispatchResult> received =
                    engines.stream().map(each -> each.dispatch(CallOptions.async())).toList();
            List<CombineResult> home = new ArrayList<>();
            for (int i = 0; i < engines.size(); i++) {
                Engine each = engines.get(i);
                CombinePlan plan =
                        CombinePlan.builder(each.made(), received.get(i).handle()).build();
                home.add(each.buffer().combine(plan, CallOptions.async()));
            }
            for (int i = 0; i < engines.size(); i++) {
                engines.get(i).rank().verify(received.get(i));
                engines.get(i).rank().verify(home.get(i));
            }
        }
        context.meet();
        shape.rank(context).roundTrip();
    }

    /** An engine that leaves waiting to its stream sizes its experts' work by them. */
    @Cases(from = "few")
    public void exactCountsAreKnownAtOnce(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchResult result = context.buffer().dispatch(rank.plan().build(), CallOptions.async());
        Tensor counts = HostTensors.copyOf(result.numRecvTokensPerExpert());
        rank.verify(result);
        for (int e = 0; e < counts.size(0); e++) {
            assertThat(counts.getLong(e)).isEqualTo(result.numRecvTokensPerExpert().getLong(e));
        }
    }

    /** A peer that does not come to calls nobody waits for: the event or the next call tells. */
    @Cases("1, 4")
    public void absentFromCallsOnAStream(RankContext context) {
        Misbehaviour.withoutOneRank(
                context,
                this,
                hasty -> {
                    NormalRank rank = NormalMisuses.rank(hasty);
                    DispatchPlan plan = worstCase(rank);
                    try (TestStream stream = streamOf(hasty)) {
                        CallOptions options = CallOptions.sync().on(stream.stream());
                        if (!hasty.isCulprit()) {
                            Misbehaviour.requireTimeout(
                                    hasty.rank(),
                                    "dispatch",
                                    () -> {
                                        hasty.buffer().dispatch(plan, options);
                                        hasty.buffer().dispatch(plan, options);
                                    });
                            Misbehaviour.requireFailed(rank::roundTrip);
                        }
                    }
                });
        NormalMisuses.rank(context).roundTrip();
    }

    @Cases("1, 4")
    public void absentFromAsynchronousCalls(RankContext context) {
        Misbehaviour.withoutOneRank(
                context,
                this,
                hasty -> {
                    NormalRank rank = NormalMisuses.rank(hasty);
                    DispatchPlan plan = worstCase(rank);
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        Event event = hasty.buffer().dispatch(plan, CallOptions.async()).event();
                        for (int i = 0; i < 2; i++) {
                            Misbehaviour.requireTimeout(
                                    hasty.rank(), "dispatch", event::synchronize);
                        }
                        Misbehaviour.requireFailed(rank::roundTrip);
                    }
                });
        NormalMisuses.rank(context).roundTrip();
    }

    private static DispatchPlan worstCase(NormalRank rank) {
        return rank.plan().numWorstTokens(NormalMisuses.LIMITS.recvCapacity(4)).build();
    }

    /** A backend whose calls run on the calling thread waits for the stream in the call. */
    private static void releaseLater(Runnable release) {
        Thread.ofVirtual()
                .start(
                        () -> {
                            try {
                                Thread.sleep(HELD_MILLIS);
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                            release.run();
                        });
    }
}
