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
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.function.Consumer;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The order of normal-mode calls against work of an engine's stream: inputs come into being on it
 * while the calls are already made, and results are used on it without anybody waiting.
 */
@BackendSuite
public record NormalStreamConformance(TestBackend backend) implements NormalSuite {
    private static final long HELD_MILLIS = 30;

    /** One rank, whose expert outputs are made on the stream of its engine. */
    private record Engine(
            NormalRank rank, NormalDispatchCheck check, int rows, Tensor outputs, Tensor made) {
        static Engine of(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            int rows = world.limits().recvCapacity(world.routing().numRanks());
            NormalDispatchCheck check = world.check().worstCase(rows);
            return new Engine(
                    rank,
                    check,
                    rows,
                    context.poisoned(DType.BF16, rows, world.hidden()),
                    rank.outputs(check));
        }

        /** In worst-case mode, so that nobody waits for counts; tokens are still to come. */
        DispatchPlan plan(Tensor x) {
            return DispatchPlan.builder(x, rank.scales())
                    .topk(rank.topkIdx(), rank.weights(), check.oracle().routing().numExperts())
                    .numWorstTokens(rows)
                    .build();
        }
    }

    private void run(NormalShape shape, Consumer<RankContext> body) {
        NormalWorld world = shape.world();
        Ranks.run(
                backend(),
                shape.topology(),
                builder -> builder.normal(world.limits()),
                body::accept);
    }

    /** Makes the rank's stream while no rank waits for another. */
    private TestStream streamOf(RankContext context) {
        TestStream stream = backend.newStream(context.device());
        context.communicator().barrier(Ranks.TIMEOUT);
        return stream;
    }

    @Cases
    @MethodSource(FEW)
    public void afterAnEvent(NormalShape shape) {
        NormalWorld world = shape.world();
        run(
                shape,
                context -> {
                    Engine engine = Engine.of(context, world);
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
                        CombinePlan plan =
                                CombinePlan.builder(engine.outputs(), result.handle()).build();
                        CombineResult home =
                                buffer.combine(plan, CallOptions.async().after(outputs));
                        assertThat(tokens.isDone()).isFalse();
                        release.run();
                        rank.verify(result, engine.check());
                        rank.verify(home, engine.check());
                    }
                });
    }

    /** The engine's stream waits for the calls, and they for it; the host need not. */
    @Cases
    @MethodSource(FEW)
    public void onAStream(NormalShape shape) {
        NormalWorld world = shape.world();
        run(
                shape,
                context -> {
                    Engine engine = Engine.of(context, world);
                    NormalRank rank = engine.rank();
                    Tensor x = context.poisoned(rank.x().dtype(), rank.x().shape());
                    Tensor seen = context.poisoned(DType.BF16, rank.x().size(0), world.hidden());
                    Buffer buffer = context.buffer();
                    try (TestStream stream = streamOf(context)) {
                        releaseLater(stream.hold());
                        stream.copy(rank.x(), x);
                        CallOptions options = CallOptions.sync().on(stream.stream());
                        DispatchResult result = buffer.dispatch(engine.plan(x), options);
                        stream.copy(engine.made(), engine.outputs());
                        CombinePlan plan =
                                CombinePlan.builder(engine.outputs(), result.handle()).build();
                        CombineResult home = buffer.combine(plan, options);
                        stream.copy(home.x(), seen);
                        stream.stream().synchronize();
                        rank.verify(result, engine.check());
                        rank.verify(new CombineResult(seen, null, home.event()), engine.check());
                    }
                });
    }

    /** An engine that leaves waiting to its stream sizes its experts' work by them. */
    @Cases
    @MethodSource(FEW)
    public void exactCountsAreKnownAtOnce(NormalShape shape) {
        NormalWorld world = shape.world();
        run(
                shape,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchResult result =
                            context.buffer().dispatch(rank.plan().build(), CallOptions.async());
                    Tensor counts = HostTensors.copyOf(result.numRecvTokensPerExpert());
                    rank.verify(result, world.check());
                    for (int e = 0; e < counts.size(0); e++) {
                        assertThat(counts.getLong(e))
                                .isEqualTo(result.numRecvTokensPerExpert().getLong(e));
                    }
                });
    }

    /** A peer that does not come to calls nobody waits for: the event or the next call tells. */
    @Cases
    @GroupSource("1, 4")
    public void absentFromCallsOnAStream() {
        NormalWorld world = NormalMisuses.world(4);
        int rows = NormalMisuses.LIMITS.recvCapacity(4);
        Misbehaviour.withoutOneRank(
                backend(),
                Ranks.topology(1, 4),
                b -> b.normal(NormalMisuses.LIMITS),
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchPlan plan = rank.plan().numWorstTokens(rows).build();
                    try (TestStream stream = backend.newStream(context.device())) {
                        meet.run();
                        if (context.rank() != Misbehaviour.CULPRIT) {
                            CallOptions options = CallOptions.sync().on(stream.stream());
                            Misbehaviour.requireTimeout(
                                    context.rank(),
                                    "dispatch",
                                    () -> {
                                        context.buffer().dispatch(plan, options);
                                        context.buffer().dispatch(plan, options);
                                    });
                            Misbehaviour.requireFailed(rank::roundTrip);
                        }
                    }
                },
                context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @GroupSource("1, 4")
    public void absentFromAsynchronousCalls() {
        NormalWorld world = NormalMisuses.world(4);
        int rows = NormalMisuses.LIMITS.recvCapacity(4);
        Misbehaviour.withoutOneRank(
                backend(),
                Ranks.topology(1, 4),
                b -> b.normal(NormalMisuses.LIMITS),
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchPlan plan = rank.plan().numWorstTokens(rows).build();
                    meet.run();
                    if (context.rank() != Misbehaviour.CULPRIT) {
                        Event event = context.buffer().dispatch(plan, CallOptions.async()).event();
                        for (int i = 0; i < 2; i++) {
                            Misbehaviour.requireTimeout(
                                    context.rank(), "dispatch", event::synchronize);
                        }
                        Misbehaviour.requireFailed(rank::roundTrip);
                    }
                },
                context -> new NormalRank(context, world).roundTrip());
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
