package io.deepep.testkit.conformance.observation;

import static io.deepep.testkit.conformance.Misbehaviour.caught;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.RoutingException;
import io.deepep.observe.BufferObserver;
import io.deepep.observe.CallFacts;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.RoutingSpec;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** What observers learn of calls agrees with the oracle, on every backend. */
@BackendSuite
public final class ObservationConformance implements RankGroup {
    private static final int HIDDEN = 256;

    /** Bytes of an FP8 row with its scales. */
    private static final long FP8_ROW = HIDDEN + 4 * (HIDDEN / 128);

    private static final NormalLimits NORMAL = NormalLimits.of(24, HIDDEN, 4, 16);
    private static final LowLatencyLimits LOW_LATENCY = new LowLatencyLimits(8, HIDDEN, 4, 8);

    /** More than a busy machine holds up a rank in most calls. */
    private static final Duration LATE = Duration.ofMillis(25);

    private final TestBackend backend;
    private final Told told = new Told();

    ObservationConformance(TestBackend backend) {
        this.backend = backend;
    }

    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(NORMAL).lowLatency(LOW_LATENCY).observer(told);
    }

    /** The calls that were reported to each rank's observer. */
    private static final class Told implements BufferObserver {
        private final Map<Integer, List<ObservedCall>> calls = new ConcurrentHashMap<>();

        @Override
        public void observe(ObservedCall call) {
            of(call.facts().topology().rank()).add(call);
        }

        List<ObservedCall> of(int rank) {
            return calls.computeIfAbsent(rank, first -> new CopyOnWriteArrayList<>());
        }

        /** The only call that is told since the last question. */
        ObservedCall next(int rank) {
            List<ObservedCall> told = of(rank);
            assertThat(told).as("calls told at rank %d", rank).hasSize(1);
            return told.removeFirst();
        }
    }

    private static void requireFinished(ObservedCall call, CallKind kind, TestBackend backend) {
        assertThat(call.kind()).isEqualTo(kind);
        assertThat(call.device().kind()).isEqualTo(backend.kind());
        assertThat(call.failure()).isNull();
        assertThat(call.finished()).isTrue();
        assertThat(call.beginNanos()).isPositive();
        assertThat(call.spanNanos()).isGreaterThanOrEqualTo(call.hostNanos());
        if (backend.kind() == Device.Kind.CUDA) {
            assertThat(call.deviceNanos()).as("time on the GPU").isPositive();
        } else {
            assertThat(call.deviceNanos()).isEqualTo(CallFacts.UNKNOWN);
        }
    }

    private static NormalRank normal(RankContext context, DType dtype) {
        RoutingSpec spec =
                RoutingSpec.of(4, 24, 16, 4)
                        .withMaskedShare(0.2)
                        .withVaryingTokens(true)
                        .withSeed(5);
        return new NormalRank(
                context, context.shared(dtype, _ -> NormalWorld.of(spec, HIDDEN, dtype)));
    }

    private static LowLatencyRank lowLatency(RankContext context) {
        return LowLatencyShape.of(context.topology(), 8, HIDDEN, 4, 8).raggedRank(context);
    }

    @Cases({"1, 4, BF16", "1, 4, FP8_E4M3", "2, 2, BF16"})
    public void normalCalls(DType dtype, RankContext context) {
        int me = context.rank();
        NormalRank rank = normal(context, dtype);
        NormalWorld world = rank.world();
        DispatchResult received = rank.dispatch();
        ObservedCall out = told.next(me);
        requireFinished(out, CallKind.NORMAL_DISPATCH, backend);
        long row = dtype == DType.BF16 ? 2 * HIDDEN : FP8_ROW;
        requireNormal(out.facts(), world, context.topology(), me, row);
        assertThat(out.facts().expertTokens())
                .as("experts")
                .isEqualTo(world.oracle().counts(me, 1));
        rank.combine(received.handle());
        ObservedCall home = told.next(me);
        requireFinished(home, CallKind.NORMAL_COMBINE, backend);
        requireHome(home.facts(), world, context.topology(), me);
        rank.combineFp8Rows(received.handle());
        CallFacts codes = told.next(me).facts();
        assertThat(codes.format()).isEqualTo("fp8_e4m3");
        assertThat(codes.rowBytes()).isEqualTo(FP8_ROW);
        assertThat(codes.receivedRows()).isEqualTo(home.facts().receivedRows());
    }

    private static void requireNormal(
            CallFacts facts, NormalWorld world, EpTopology topology, int me, long row) {
        assertThat(facts.numTokens()).isEqualTo(world.routing().numTokens(me));
        assertThat(facts.numRecvTokens())
                .as("rows received")
                .isEqualTo(world.oracle().rows(me).size());
        requireMoved(facts, wide(world.routing().tokensPerRank()[me]), rowsFrom(world, me));
        requireTraffic(facts, Traffic.normal(world.routing(), topology, me), row);
    }

    private static void requireMoved(CallFacts facts, long[] sent, long[] received) {
        assertThat(facts.sentRows()).as("rows sent").isEqualTo(sent);
        assertThat(facts.receivedRows()).as("rows by source").isEqualTo(received);
    }

    private static void requireTraffic(CallFacts facts, Traffic traffic, long row) {
        assertThat(facts.rowBytes()).isEqualTo(row);
        assertThat(facts.nvlinkBytes()).as("NVLink bytes").isEqualTo(traffic.nvlinkRows() * row);
        assertThat(facts.rdmaBytes()).as("RDMA bytes").isEqualTo(traffic.rdmaRows() * row);
    }

    /** A combine takes the ways of its dispatch back, as BF16. */
    private static void requireHome(
            CallFacts facts, NormalWorld world, EpTopology topology, int me) {
        assertThat(facts.format()).isEqualTo("bf16");
        assertThat(facts.numTokens()).isEqualTo(world.routing().numTokens(me));
        long[] home = wide(world.routing().tokensPerRank()[me]);
        assertThat(facts.numRecvTokens()).as("rows home").isEqualTo(Arrays.stream(home).sum());
        requireMoved(facts, rowsFrom(world, me), home);
        requireTraffic(facts, Traffic.normal(world.routing(), topology, me), 2 * HIDDEN);
        assertThat(facts.expertTokens()).isNull();
    }

    /** Cached and worst-case dispatches, of which the host does not learn what arrives. */
    @Cases({"1, 4", "2, 2"})
    public void dispatchesWithoutCounts(RankContext context) {
        int me = context.rank();
        NormalRank exact = normal(context, DType.BF16);
        NormalWorld world = exact.world();
        int worst = world.routing().numRanks() * world.routing().maxTokens();
        NormalRank rank = exact.expecting(world.check().worstCase(worst));
        DispatchResult received = rank.dispatch();
        ObservedCall first = told.next(me);
        requireFinished(first, CallKind.NORMAL_DISPATCH, backend);
        requireNormal(first.facts(), world, context.topology(), me, 2 * HIDDEN);
        DispatchPlan cached = rank.bare().cached(received.handle()).build();
        rank.call(cached);
        ObservedCall second = told.next(me);
        requireNormal(second.facts(), world, context.topology(), me, 2 * HIDDEN);
        assertThat(second.facts().expertTokens()).isNull();
        rank.combine(received.handle());
        requireHome(told.next(me).facts(), world, context.topology(), me);
    }

    private static long[] rowsFrom(NormalWorld world, int me) {
        long[] rows = new long[world.routing().numRanks()];
        world.oracle().rows(me).forEach(row -> rows[row.srcRank()]++);
        return rows;
    }

    private static long[] wide(int[] counts) {
        return Arrays.stream(counts).asLongStream().toArray();
    }

    /** Asynchronous calls are reported when their end has been seen, not when they return. */
    @Cases("1, 4")
    public void asynchronousCalls(RankContext context) {
        NormalRank rank = normal(context, DType.BF16);
        DispatchPlan plan = rank.plan().build();
        for (int i = 0; i < 3; i++) {
            DispatchResult result = context.buffer().dispatch(plan, CallOptions.async());
            result.event().synchronize();
            result.event().synchronize();
            ObservedCall call = told.next(context.rank());
            requireFinished(call, CallKind.NORMAL_DISPATCH, backend);
            requireNormal(
                    call.facts(), rank.world(), context.topology(), context.rank(), 2 * HIDDEN);
        }
    }

    @Cases({"1, 4, false", "1, 4, true", "2, 2, false"})
    public void lowLatencyCalls(boolean hook, RankContext context) {
        int me = context.rank();
        LowLatencyRank rank = lowLatency(context);
        LowLatencyWorld world = rank.world();
        LowLatencyFormat format = LowLatencyFormat.FP8_UE8M0;
        LowLatencyDispatchResult result =
                context.buffer()
                        .lowLatencyDispatch(rank.weighted(format).receiveHook(hook).build());
        if (hook) {
            result.event().synchronize();
            assertThat(told.of(me)).as("told before the hook").isEmpty();
            result.receiveHook().run();
        }
        rank.verify(result, format);
        ObservedCall out = told.next(me);
        requireFinished(out, CallKind.LOW_LATENCY_DISPATCH, backend);
        requireLowLatency(out.facts(), world, context.topology(), me);
        rank.combine(result.handle(), CombineFormat.LOGFMT);
        ObservedCall home = told.next(me);
        requireFinished(home, CallKind.LOW_LATENCY_COMBINE, backend);
        requireLowLatencyHome(home.facts(), world, me);
        rank.combinePreReduced(result.handle(), CombineFormat.FP8);
        CallFacts sums = told.next(me).facts();
        assertThat(sums.format()).isEqualTo("fp8_e4m3");
        assertThat(sums.rowBytes()).isEqualTo(FP8_ROW);
        requireMoved(sums, out.facts().receivedRows(), out.facts().sentRows());
    }

    private static void requireLowLatency(
            CallFacts facts, LowLatencyWorld world, EpTopology topology, int me) {
        int[] experts = world.oracle().counts(me);
        assertThat(facts.numTokens()).isEqualTo(world.routing().numTokens(me));
        assertThat(facts.numRecvTokens())
                .as("selections received")
                .isEqualTo(Arrays.stream(experts).sum());
        assertThat(facts.expertTokens()).as("experts").isEqualTo(experts);
        requireTraffic(facts, Traffic.lowLatency(world.routing(), topology, me), FP8_ROW);
        int[][] tokens = world.routing().tokensPerRank();
        long[] received = Arrays.stream(tokens).mapToLong(ofSource -> ofSource[me]).toArray();
        requireMoved(facts, wide(tokens[me]), received);
    }

    private static void requireLowLatencyHome(CallFacts facts, LowLatencyWorld world, int me) {
        assertThat(facts.format()).isEqualTo("logfmt10");
        assertThat(facts.rowBytes()).isEqualTo(HIDDEN / 128 * 168);
        int numRanks = world.routing().numRanks();
        long[] home = new long[numRanks];
        long[] sent = new long[numRanks];
        for (int peer = 0; peer < numRanks; peer++) {
            for (int expert = 0; expert < world.routing().numLocalExperts(); expert++) {
                home[peer] += world.oracle().countFrom(peer, expert, me);
                sent[peer] += world.oracle().countFrom(me, expert, peer);
            }
        }
        requireMoved(facts, sent, home);
        assertThat(facts.numRecvTokens()).as("rows home").isEqualTo(Arrays.stream(home).sum());
    }

    /** A call that fails is reported with its failure, on every rank, and so is the next one. */
    @Cases("1, 4")
    public void failedCalls(RankContext context) {
        NormalRank rank = normal(context, DType.BF16);
        long tokens = rank.world().routing().numTokens(context.rank());
        Tensor bad = HostTensors.allocate(DType.I64, tokens, 4);
        if (tokens > 0) {
            bad.setLong(16, tokens - 1, 3);
        }
        DispatchPlan wrong = rank.bare().topk(context.upload(bad), null, 16).build();
        caught(RoutingException.class, () -> rank.call(wrong));
        ObservedCall call = told.next(context.rank());
        assertThat(call.failure()).isInstanceOf(RoutingException.class);
        assertThat(call.finished()).isFalse();
        assertThat(call.deviceNanos()).isEqualTo(CallFacts.UNKNOWN);
        rank.roundTrip();
        assertThat(told.of(context.rank())).hasSize(2).allMatch(ObservedCall::finished);
    }

    /** What is known of a combine with an expert that does not exist is told all the same. */
    @Cases("1, 4")
    public void failedCombine(RankContext context) {
        LowLatencyRank rank = lowLatency(context);
        LowLatencyDispatchResult received = rank.dispatch(LowLatencyFormat.BF16);
        told.next(context.rank());
        Tensor bad = context.download(rank.topkIdx());
        if (bad.numElements() > 0) {
            bad.setLong(LOW_LATENCY.numExperts(), 0, 0);
        }
        LowLatencyCombinePlan wrong =
                LowLatencyCombinePlan.builder(
                                rank.outputs(),
                                context.upload(bad),
                                rank.weights(),
                                received.handle())
                        .build();
        caught(RoutingException.class, () -> rank.call(wrong));
        ObservedCall call = told.next(context.rank());
        assertThat(call.failure()).isInstanceOf(RoutingException.class);
        assertThat(call.facts().format()).isEqualTo("bf16");
        assertThat(call.facts().numTokens()).isEqualTo(bad.size(0));
        rank.combine(received.handle());
        assertThat(told.next(context.rank()).finished()).isTrue();
    }

    /** What an observer throws harms nobody. */
    @Cases("1, 4")
    public void failingObserver() {
        Ranks.run(
                backend,
                Ranks.topology(1, 4),
                builder -> {
                    builder.observer(
                            call -> {
                                throw new IllegalStateException("not my day");
                            });
                    builder.observer(
                            call -> {
                                throw new NoSuchMethodError("of another version of my library");
                            });
                    builder.observer(
                            call ->
                                    ObservationConformance.<RuntimeException>throwUndeclared(
                                            new IOException("no disk")));
                    limit(builder);
                },
                context -> {
                    normal(context, DType.BF16).roundTrip();
                    assertThat(told.of(context.rank())).hasSize(2);
                });
    }

    /** As other languages than Java do. */
    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> void throwUndeclared(Throwable what) throws T {
        throw (T) what;
    }

    /** A rank that comes late is the one that the others say they waited for. */
    @Cases({"1, 4", "2, 2"})
    public void waitsForTheLateRank(RankContext context) {
        NormalRank rank = normal(context, DType.BF16);
        DispatchResult received = rank.dispatch();
        CombinePlan home = CombinePlan.builder(rank.outputs(), received.handle()).build();
        context.buffer().combine(home);
        requireWaits(context, CallKind.NORMAL_COMBINE, 2, () -> rank.call(home));
    }

    @Cases({"1, 4, false", "1, 4, true"})
    public void lowLatencyWaitsForTheLateRank(boolean hook, RankContext context) {
        LowLatencyRank rank = lowLatency(context);
        LowLatencyDispatchPlan plan = rank.plan(LowLatencyFormat.BF16).receiveHook(hook).build();
        requireWaits(
                context,
                CallKind.LOW_LATENCY_DISPATCH,
                1,
                () -> {
                    LowLatencyDispatchResult result = context.buffer().lowLatencyDispatch(plan);
                    ExchangeRank.receive(result.receiveHook());
                    rank.call(rank.home(result.handle()).build());
                });
    }

    /**
     * On one node, most calls wait longest for the late rank: something else may hold up others now
     * and then. Of other nodes' ranks, some are heard of through others. On a busy machine the rank
     * must be later to be the last.
     */
    private void requireWaits(RankContext context, CallKind kind, int late, Runnable round) {
        boolean oneNode = !context.topology().isInternode();
        List<long[]> waits = List.of();
        boolean seen = false;
        for (int attempt = 1; attempt <= 16 && !seen; attempt *= 2) {
            told.of(context.rank()).clear();
            for (int i = 0; i < 10; i++) {
                if (context.rank() == late) {
                    Misbehaviour.pause(LATE.multipliedBy(attempt));
                }
                round.run();
            }
            waits =
                    told.of(context.rank()).stream()
                            .filter(call -> call.kind() == kind)
                            .map(call -> call.facts().waitNanos())
                            .toList();
            assertThat(waits)
                    .hasSize(10)
                    .allSatisfy(each -> assertThat(each).hasSize(4))
                    .allMatch(each -> Arrays.stream(each).allMatch(nanos -> nanos >= 0));
            long waited =
                    waits.stream()
                            .filter(each -> each[late] >= (oneNode ? max(each) : 1))
                            .filter(each -> each[late] > 0)
                            .count();
            seen =
                    context.everywhere(
                            context.rank() == late || waited > (oneNode ? 5 : 0), Ranks.TIMEOUT);
        }
        assertThat(seen)
                .as(
                        "all say that they waited for rank %d; rank %d: %s",
                        late, context.rank(), waits.stream().map(Arrays::toString).toList())
                .isTrue();
    }

    private static long max(long[] values) {
        return Arrays.stream(values).max().orElseThrow();
    }
}
