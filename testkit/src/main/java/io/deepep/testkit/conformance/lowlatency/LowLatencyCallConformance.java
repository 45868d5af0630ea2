package io.deepep.testkit.conformance.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;

/** Single low-latency calls in all their forms. */
@BackendSuite
public record LowLatencyCallConformance(TestBackend backend) {
    private static final Duration LATE = Duration.ofMillis(25);

    /** In each the late rank is later: on a busy machine, the others may be as late. */
    private static final int MOST_ROUNDS = 20;

    @Cases(from = "allFormats")
    public void roundTrip(LowLatencyShape shape, LowLatencyFormat format, RankContext context) {
        shape.rank(context).roundTrip(format);
    }

    /** Nodes of sizes that no shape has. */
    @Cases(from = "otherNodeSizes")
    public void otherNodeSizes(LowLatencyShape shape, RankContext context) {
        shape.raggedRank(context).roundTrip();
    }

    /** As many tokens as the mode allows; then from all ranks but one. */
    @Cases(from = "mostTokens")
    public void mostTokens(LowLatencyShape shape, RankContext context) {
        shape.rank(context).roundTrip();
        shape.rank(context, shape.spec().withIdleRanks(1)).roundTrip(LowLatencyFormat.BF16);
    }

    /** Any number of multiprocessors, another on every rank and in every call. */
    @Cases(from = "few")
    public void numberOfSms(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        LowLatencyFormat format = LowLatencyFormat.FP8;
        for (int round = 0; round < 5; round++) {
            int sms = 1 + (context.rank() + 3 * round) % 7;
            LowLatencyDispatchResult result = rank.dispatch(rank.plan(format).numSms(sms).build());
            rank.combine(rank.home(result.handle()).numSms(8 - sms));
        }
    }

    @Cases(from = "allFormats")
    public void masksDuplicatesAndRaggedTokens(
            LowLatencyShape shape, LowLatencyFormat format, RankContext context) {
        shape.raggedRank(context).roundTrip(format);
    }

    @Cases(from = "few")
    public void everythingToOneExpertAndNothingAtAll(LowLatencyShape shape, RankContext context) {
        RoutingSpec one = shape.spec().withGate(new Gate.AllToOne(shape.experts() - 1));
        shape.rank(context, one).roundTrip();
        shape.rank(context, shape.spec().withMaskedShare(1)).roundTrip();
    }

    @Cases(from = "all")
    public void logFmt(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        rank.combine(rank.dispatch(LowLatencyFormat.BF16).handle(), CombineFormat.LOGFMT);
    }

    /** Twice the same bits, from memory of the caller and of the buffer, in one half and in two. */
    @Cases(from = "all")
    public void fp8(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        CombineFormat format = CombineFormat.FP8;
        for (int round = 0; round < 2; round++) {
            LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
            Tensor once = rank.combine(result.handle(), format);
            Tensor own = rank.filledCombineBuffer(result.handle());
            Tensor twice =
                    rank.combine(rank.home(own, result.handle()).format(format).receiveHook(true));
            assertThat(HostTensors.firstDifference(once, twice)).isEqualTo(-1);
        }
    }

    @Cases(from = "all")
    public void zeroCopy(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        for (int round = 0; round < 3; round++) {
            LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
            Tensor own = rank.filledCombineBuffer(result.handle());
            rank.combine(rank.home(own, result.handle()));
        }
    }

    /** Experts that do nothing: the received rows go home as they are. */
    @Cases(from = "few")
    public void combineOfTheReceivedRows(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank =
                new LowLatencyRank(
                        context,
                        context.shared(
                                shape.raggedSpec(),
                                spec -> shape.world(spec).withIdentityExperts()));
        LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
        rank.combine(rank.home(result.recvX(), result.handle()));
    }

    @Cases(from = "few")
    public void outTensor(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        int tokens = rank.world().routing().numTokens(context.rank());
        Tensor out = context.poisoned(DType.BF16, tokens, shape.hidden());
        Tensor strided = context.poisonedWithRowGap(8, DType.BF16, tokens, shape.hidden());
        Tensor unaligned = context.poisonedWithRowGap(3, DType.BF16, tokens, shape.hidden());
        for (Tensor target : new Tensor[] {out, strided, unaligned}) {
            LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
            for (CombineFormat format : CombineFormat.values()) {
                LowLatencyCombinePlan plan =
                        rank.home(result.handle()).format(format).out(target).build();
                LowLatencyCombineResult combined = context.buffer().lowLatencyCombine(plan);
                rank.verify(combined, plan);
                assertThat(combined.x().address()).isEqualTo(target.address());
            }
        }
    }

    @Cases(from = "few")
    public void stridedTokens(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context);
        Tensor host = rank.world().tokens().get(context.rank()).x();
        Tensor x = context.upload(HostTensors.withRowGap(host, 24));
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            LowLatencyDispatchPlan plan =
                    LowLatencyDispatchPlan.builder(x, rank.topkIdx()).format(format).build();
            rank.combine(rank.dispatch(plan).handle());
        }
    }

    @Cases(from = "few")
    public void stridedExpertOutputs(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        Tensor host = rank.world().outputs().get(context.rank());
        Tensor x = context.upload(HostTensors.withRowGap(host, 24));
        for (CombineFormat format : CombineFormat.values()) {
            LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.BF16).handle();
            rank.combine(rank.home(x, handle).format(format));
        }
    }

    /**
     * Tokens may be smaller than the buffer's limit, or packed for their way out; what the experts
     * make of them comes home in its own size.
     */
    @Cases(from = "all")
    public void rowsOfAnotherSize(LowLatencyShape shape, RankContext context) {
        LowLatencyRank wide = shape.raggedRank(context);
        LowLatencyRank packed = shape.packedRank(context);
        LowLatencyRank narrow = shape.rankOf(context, 128 * Math.ceilDiv(shape.hidden(), 256));
        LowLatencyHandle packedHandle = packed.dispatchWeighted(LowLatencyFormat.BF16).handle();
        LowLatencyHandle wideHandle = wide.dispatchWeighted(LowLatencyFormat.BF16).handle();
        packed.combine(wideHandle);
        packed.combinePreReduced(wideHandle);
        for (CombineFormat format : CombineFormat.values()) {
            wide.combine(packedHandle, format);
            narrow.combine(wideHandle, format);
            wide.combinePreReduced(packedHandle, format);
            narrow.combinePreReduced(wideHandle, format);
        }
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            wide.combine(narrow.dispatch(format).handle());
            narrow.combine(wide.dispatch(format).handle());
        }
    }

    /** The rows of one rank have another size, on their way out or home. */
    @Cases(from = "few")
    public void differentSizesOfRows(LowLatencyShape shape, RankContext context) {
        LowLatencyRank wide = shape.raggedRank(context);
        LowLatencyRank narrow = shape.rankOf(context, 128);
        LowLatencyRank own = context.isCulprit() ? narrow : wide;
        String hidden = Integer.toString(shape.hidden());
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            LowLatencyDispatchPlan plan = own.plan(format).build();
            Misbehaviour.requireMismatch(() -> own.call(plan), "on hidden", "128", hidden);
            wide.roundTrip(format);
        }
        LowLatencyHandle handle = wide.dispatchWeighted(LowLatencyFormat.FP8).handle();
        for (CombineFormat format : CombineFormat.values()) {
            LowLatencyCombinePlan each = own.home(handle).format(format).build();
            Misbehaviour.requireMismatch(() -> own.call(each), "on hidden", "128", hidden);
            LowLatencyCombinePlan sum = own.preReduced(handle).format(format).build();
            Misbehaviour.requireMismatch(() -> own.call(sum), "on hidden", "128", hidden);
            wide.combine(handle, format);
        }
    }

    @Cases(from = "few")
    public void hooks(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        LowLatencyDispatchPlan plan = rank.plan(LowLatencyFormat.FP8).receiveHook(true).build();
        for (int round = 0; round < 4; round++) {
            LowLatencyDispatchResult result = rank.dispatch(plan);
            rank.combine(rank.home(result.handle()).receiveHook(true));
        }
    }

    @Cases(from = "few")
    public void noHookUnlessAskedFor(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context);
        LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
        assertThat(result.receiveHook()).isNull();
        LowLatencyCombineResult combined =
                context.buffer().lowLatencyCombine(rank.home(result.handle()).build());
        assertThat(combined.receiveHook()).isNull();
        rank.verify(combined);
    }

    @Cases(from = "few")
    public void asynchronousChain(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        Buffer buffer = context.buffer();
        CallOptions options = CallOptions.async();
        for (int round = 0; round < 4; round++) {
            LowLatencyDispatchResult result =
                    buffer.lowLatencyDispatch(rank.plan(LowLatencyFormat.BF16).build(), options);
            LowLatencyCombineResult combined =
                    buffer.lowLatencyCombine(
                            rank.home(result.handle()).build(), options.after(result.event()));
            rank.verify(combined);
            rank.verify(result, LowLatencyFormat.BF16);
            options = CallOptions.async().after(combined.event());
        }
    }

    /** Counts are added to what is there; waiting times grow by those for the rank that is late. */
    @Cases(from = "few")
    public void statistics(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        LowLatencyWorld world = rank.world();
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
        boolean waited = false;
        for (int round = 1; round <= 3 || (!waited && round <= MOST_ROUNDS); round++) {
            if (context.isCulprit()) {
                Misbehaviour.pause(LATE.multipliedBy(round));
            }
            LowLatencyDispatchResult result = rank.dispatch(plan);
            rank.combine(rank.home(result.handle()).waitCostStats(combineWaits));
            Tensor seen = context.download(stats);
            int[] counts = world.oracle().counts(context.rank());
            for (int expert = 0; expert < experts; expert++) {
                assertThat(seen.getLong(expert)).isEqualTo(100 + expert + round * counts[expert]);
            }
            Tensor after = context.download(dispatchWaits);
            Tensor home = context.download(combineWaits);
            for (int src = 0; src < ranks; src++) {
                assertThat(after.getLong(src)).isGreaterThanOrEqualTo(before.getLong(src));
                assertThat(home.getLong(src)).isNotNegative();
            }
            before = after;
            waited =
                    context.everywhere(
                            context.isCulprit() || after.getLong(Misbehaviour.CULPRIT) > 0,
                            Ranks.TIMEOUT);
        }
        assertThat(waited).as("all have waited for the late rank").isTrue();
    }
}
