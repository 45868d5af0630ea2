package io.deepep.testkit.conformance.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import org.junit.jupiter.params.provider.MethodSource;

/** Single low-latency calls in all their forms. */
@BackendSuite
public record LowLatencyCallConformance(TestBackend backend) implements LowLatencySuite {
    @Cases
    @MethodSource(ALL_FORMATS)
    public void roundTrip(LowLatencyShape shape, LowLatencyFormat format) {
        LowLatencyWorld world = shape.world(shape.spec());
        run(shape, context -> new LowLatencyRank(context, world).roundTrip(format));
    }

    /** Nodes of sizes that no shape has. */
    @Cases
    @GroupSource({"1, 3", "1, 5", "1, 6", "1, 7", "2, 3", "3, 2"})
    public void otherNodeSizes(int nodes, int ranksPerNode) {
        int experts = 2 * nodes * ranksPerNode;
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 9, 256, 5, experts);
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(shape, context -> new LowLatencyRank(context, world).roundTrip(LowLatencyFormat.FP8));
    }

    /** As many tokens as the mode allows; then from all ranks but one. */
    @Cases
    @GroupSource({"1, 2", "2, 1"})
    public void mostTokens(int nodes, int ranksPerNode) {
        LowLatencyShape shape =
                new LowLatencyShape(nodes, ranksPerNode, LowLatencyLimits.MAX_TOKENS, 128, 4, 8);
        LowLatencyWorld full = shape.world(shape.spec());
        LowLatencyWorld uneven = shape.world(shape.spec().withIdleRanks(1));
        run(
                shape,
                context -> {
                    new LowLatencyRank(context, full).roundTrip(LowLatencyFormat.FP8);
                    new LowLatencyRank(context, uneven).roundTrip(LowLatencyFormat.BF16);
                });
    }

    /** Any number of multiprocessors, another on every rank and in every call. */
    @Cases
    @MethodSource(FEW)
    public void numberOfSms(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        LowLatencyFormat format = LowLatencyFormat.FP8;
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Buffer buffer = context.buffer();
                    for (int round = 0; round < 5; round++) {
                        int sms = 1 + (context.rank() + 3 * round) % 7;
                        LowLatencyDispatchResult result =
                                rank.verify(
                                        buffer.lowLatencyDispatch(
                                                rank.plan(format).numSms(sms).build()),
                                        format);
                        rank.verify(
                                buffer.lowLatencyCombine(
                                        rank.home(result.handle()).numSms(8 - sms).build()));
                    }
                });
    }

    @Cases
    @MethodSource(ALL_FORMATS)
    public void masksDuplicatesAndRaggedTokens(LowLatencyShape shape, LowLatencyFormat format) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(shape, context -> new LowLatencyRank(context, world).roundTrip(format));
    }

    @Cases
    @MethodSource(FEW)
    public void everythingToOneExpertAndNothingAtAll(LowLatencyShape shape) {
        RoutingSpec one = shape.spec().withGate(new Gate.AllToOne(shape.experts() - 1));
        LowLatencyWorld crowded = shape.world(one);
        LowLatencyWorld empty = shape.world(shape.spec().withMaskedShare(1));
        run(
                shape,
                context -> {
                    new LowLatencyRank(context, crowded).roundTrip(LowLatencyFormat.FP8);
                    new LowLatencyRank(context, empty).roundTrip(LowLatencyFormat.FP8);
                });
    }

    @Cases
    @MethodSource(ALL)
    public void logFmt(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
                    LowLatencyCombinePlan plan = rank.home(result.handle()).logFmt(true).build();
                    rank.verifyLogFmt(context.buffer().lowLatencyCombine(plan));
                });
    }

    @Cases
    @MethodSource(ALL)
    public void zeroCopy(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    for (int round = 0; round < 3; round++) {
                        LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
                        Tensor own = rank.filledCombineBuffer(result.handle());
                        LowLatencyCombinePlan plan =
                                LowLatencyCombinePlan.builder(
                                                own,
                                                rank.topkIdx(),
                                                rank.weights(),
                                                result.handle())
                                        .build();
                        rank.verify(context.buffer().lowLatencyCombine(plan));
                    }
                });
    }

    /** Experts that do nothing: the received rows go home as they are. */
    @Cases
    @MethodSource(FEW)
    public void combineOfTheReceivedRows(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec()).withIdentityExperts();
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
                    LowLatencyCombinePlan plan =
                            LowLatencyCombinePlan.builder(
                                            result.recvX(),
                                            rank.topkIdx(),
                                            rank.weights(),
                                            result.handle())
                                    .build();
                    rank.verify(context.buffer().lowLatencyCombine(plan));
                });
    }

    @Cases
    @MethodSource(FEW)
    public void outTensor(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    int tokens = world.routing().numTokens(context.rank());
                    Tensor out = context.poisoned(DType.BF16, tokens, shape.hidden());
                    Tensor host =
                            HostTensors.poison(
                                    HostTensors.allocate(DType.BF16, tokens, shape.hidden()));
                    Tensor strided = context.upload(HostTensors.withRowGap(host, 8));
                    for (Tensor target : new Tensor[] {out, strided}) {
                        LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
                        LowLatencyCombinePlan plan = rank.home(result.handle()).out(target).build();
                        LowLatencyCombineResult combined = context.buffer().lowLatencyCombine(plan);
                        rank.verify(combined);
                        assertThat(combined.x().address()).isEqualTo(target.address());
                    }
                });
    }

    @Cases
    @MethodSource(FEW)
    public void stridedTokens(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.spec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Tensor host = world.tokens().get(context.rank()).x();
                    Tensor x = context.upload(HostTensors.withRowGap(host, 24));
                    for (LowLatencyFormat format : LowLatencyFormat.values()) {
                        LowLatencyDispatchPlan plan =
                                LowLatencyDispatchPlan.builder(x, rank.topkIdx())
                                        .format(format)
                                        .build();
                        rank.combine(
                                rank.verify(context.buffer().lowLatencyDispatch(plan), format)
                                        .handle());
                    }
                });
    }

    @Cases
    @MethodSource(FEW)
    public void stridedExpertOutputs(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Tensor host = world.outputs().get(context.rank());
                    Tensor x = context.upload(HostTensors.withRowGap(host, 24));
                    for (boolean logFmt : new boolean[] {false, true}) {
                        LowLatencyCombinePlan plan =
                                LowLatencyCombinePlan.builder(
                                                x,
                                                rank.topkIdx(),
                                                rank.weights(),
                                                rank.dispatch(LowLatencyFormat.BF16).handle())
                                        .logFmt(logFmt)
                                        .build();
                        LowLatencyCombineResult result = context.buffer().lowLatencyCombine(plan);
                        if (logFmt) {
                            rank.verifyLogFmt(result);
                        } else {
                            rank.verify(result);
                        }
                    }
                });
    }

    @Cases
    @MethodSource(FEW)
    public void hooks(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Buffer buffer = context.buffer();
                    LowLatencyDispatchPlan plan =
                            rank.plan(LowLatencyFormat.FP8).receiveHook(true).build();
                    for (int round = 0; round < 4; round++) {
                        LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan);
                        result.receiveHook().run();
                        rank.verify(result, LowLatencyFormat.FP8);
                        LowLatencyCombineResult combined =
                                buffer.lowLatencyCombine(
                                        rank.home(result.handle()).receiveHook(true).build());
                        combined.receiveHook().run();
                        rank.verify(combined);
                    }
                });
    }

    @Cases
    @MethodSource(FEW)
    public void noHookUnlessAskedFor(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.spec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
                    assertThat(result.receiveHook()).isNull();
                    LowLatencyCombineResult combined =
                            context.buffer().lowLatencyCombine(rank.home(result.handle()).build());
                    assertThat(combined.receiveHook()).isNull();
                    rank.verify(combined);
                });
    }

    @Cases
    @MethodSource(FEW)
    public void asynchronousChain(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    Buffer buffer = context.buffer();
                    CallOptions options = CallOptions.async();
                    for (int round = 0; round < 4; round++) {
                        LowLatencyDispatchResult result =
                                buffer.lowLatencyDispatch(
                                        rank.plan(LowLatencyFormat.BF16).build(), options);
                        LowLatencyCombineResult combined =
                                buffer.lowLatencyCombine(
                                        rank.home(result.handle()).build(),
                                        options.after(result.event()));
                        rank.verify(combined);
                        rank.verify(result, LowLatencyFormat.BF16);
                        options = CallOptions.async().after(combined.event());
                    }
                });
    }

    /** Counts are added to what is there; waiting times only grow. */
    @Cases
    @MethodSource(FEW)
    public void statistics(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    int experts = world.routing().numLocalExperts();
                    int ranks = world.routing().numRanks();
                    Tensor start = HostTensors.allocate(DType.I32, experts);
                    for (int expert = 0; expert < experts; expert++) {
                        start.setLong(100 + expert, expert);
                    }
                    Tensor stats = context.upload(start);
                    Tensor dispatchWaits = context.upload(HostTensors.allocate(DType.I64, ranks));
                    Tensor combineWaits = context.upload(HostTensors.allocate(DType.I64, ranks));
                    LowLatencyDispatchPlan plan =
                            rank.plan(LowLatencyFormat.FP8)
                                    .cumulativeStats(stats)
                                    .waitCostStats(dispatchWaits)
                                    .build();
                    Tensor before = context.download(dispatchWaits);
                    for (int round = 1; round <= 3; round++) {
                        LowLatencyDispatchResult result = context.buffer().lowLatencyDispatch(plan);
                        rank.verify(result, LowLatencyFormat.FP8);
                        rank.verify(
                                context.buffer()
                                        .lowLatencyCombine(
                                                rank.home(result.handle())
                                                        .waitCostStats(combineWaits)
                                                        .build()));
                        Tensor seen = context.download(stats);
                        int[] counts = world.oracle().counts(context.rank());
                        for (int expert = 0; expert < experts; expert++) {
                            assertThat(seen.getLong(expert))
                                    .isEqualTo(100 + expert + round * counts[expert]);
                        }
                        Tensor after = context.download(dispatchWaits);
                        Tensor home = context.download(combineWaits);
                        for (int src = 0; src < ranks; src++) {
                            assertThat(after.getLong(src))
                                    .isGreaterThanOrEqualTo(before.getLong(src));
                            assertThat(home.getLong(src)).isNotNegative();
                        }
                        before = after;
                    }
                });
    }
}
