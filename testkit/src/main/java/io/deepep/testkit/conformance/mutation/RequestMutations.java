package io.deepep.testkit.conformance.mutation;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Good plans of which one field or two are spoilt. */
final class RequestMutations {
    private static final int EXPERTS = 16;

    private final RankContext context;
    private final SplittableRandom random;
    private final TensorMutations tensors;
    private int first;
    private int second;
    private int field;

    /** The plan's tensors so far, which others can lie over. */
    private final List<Tensor> chosen = new ArrayList<>();

    RequestMutations(RankContext context, MemorySegment untouchable, SplittableRandom random) {
        this.context = context;
        this.random = random;
        this.tensors = new TensorMutations(context, untouchable, random);
    }

    /** What was done, for messages. */
    @Override
    public String toString() {
        return tensors.said().toString();
    }

    /** Chooses what to spoil among {@code numFields} fields, then asked for in order. */
    private void begin(int numFields) {
        first = random.nextInt(numFields);
        second = random.nextInt(4) == 0 ? random.nextInt(numFields) : first;
        field = 0;
    }

    private boolean next() {
        boolean spoilt = field == first || field == second;
        field++;
        return spoilt;
    }

    private Tensor tensor(String name, Tensor good) {
        Tensor given = next() ? tensors.spoil(name, good, chosen) : good;
        chosen.add(given);
        return given;
    }

    private int number(String name, int good) {
        return next() ? tensors.spoil(name, good) : good;
    }

    private boolean flag(String name) {
        if (next()) {
            tensors.said().add(name);
            return true;
        }
        return false;
    }

    DispatchPlan dispatch(NormalRank rank, DispatchHandle handle) {
        DispatchLayout layout = context.buffer().getDispatchLayout(rank.topkIdx(), EXPERTS);
        boolean given = random.nextInt(3) == 0;
        begin(given ? 12 : 9);
        DispatchPlan.Tokens tokens =
                DispatchPlan.builder(tensor("x", rank.x()), tensor("scales", rank.scales()));
        boolean cached = flag("cached");
        DispatchPlan.Builder plan =
                cached ? tokens.cached(handle) : routed(tokens, rank, given ? layout : null);
        return plan.expertAlignment(number("expertAlignment", 1))
                .numWorstTokens(number("numWorstTokens", 0))
                .expanded(flag("expanded"))
                .build();
    }

    private DispatchPlan.Builder routed(
            DispatchPlan.Tokens tokens, NormalRank rank, DispatchLayout good) {
        DispatchPlan.Builder plan =
                tokens.topk(
                        tensor("topkIdx", rank.topkIdx()),
                        tensor("topkWeights", rank.weights()),
                        number("numExperts", EXPERTS));
        if (good == null) {
            return plan;
        }
        DispatchLayout layout =
                new DispatchLayout(
                        tensor("numTokensPerRank", good.numTokensPerRank()),
                        good.numTokensPerRdmaRank(),
                        tensor("numTokensPerExpert", good.numTokensPerExpert()),
                        tensor("isTokenInRank", good.isTokenInRank()),
                        good.event());
        return random.nextBoolean() ? plan.expectLayout(layout) : tokens.layout(layout);
    }

    CombinePlan combine(NormalRank rank, DispatchHandle handle) {
        NormalWorld world = rank.world();
        Tensor x = rank.outputs();
        Tensor bias = context.upload(world.bias(context.rank(), 0));
        Tensor out =
                context.poisoned(
                        DType.BF16, world.routing().numTokens(context.rank()), world.hidden());
        ScaledRows fp8 = random.nextInt(4) == 0 ? rank.fp8Outputs() : null;
        begin(6);
        return CombinePlan.builder(
                        tensor("x", fp8 == null ? x : context.upload(fp8.elements())), handle)
                .scales(tensor("scales", fp8 == null ? null : context.upload(fp8.scales())))
                .topkWeights(tensor("topkWeights", null))
                .bias(tensor("bias0", bias), tensor("bias1", bias))
                .out(tensor("out", out))
                .build();
    }

    LowLatencyDispatchPlan dispatch(LowLatencyRank rank) {
        Tensor counts = context.poisoned(DType.I32, rank.world().routing().numLocalExperts());
        Tensor waits = context.poisoned(DType.I64, context.communicator().size());
        begin(8);
        LowLatencyDispatchPlan.Builder plan =
                LowLatencyDispatchPlan.builder(
                                tensor("x", rank.x()), tensor("topkIdx", rank.topkIdx()))
                        .topkWeights(tensor("topkWeights", null))
                        .cumulativeStats(tensor("cumulativeStats", counts))
                        .waitCostStats(tensor("waitCostStats", waits))
                        .receiveHook(flag("receiveHook"));
        if (flag("format")) {
            plan.format(LowLatencyFormat.BF16);
        }
        if (next()) {
            plan.numSms(tensors.spoil("numSms", 1));
        }
        return plan.build();
    }

    LowLatencyCombinePlan combine(LowLatencyRank rank, LowLatencyHandle handle) {
        Tensor out = context.poisoned(DType.BF16, rank.x().shape());
        Tensor waits = context.poisoned(DType.I64, context.communicator().size());
        begin(8);
        LowLatencyCombinePlan.Builder plan =
                LowLatencyCombinePlan.builder(
                                tensor("x", rank.outputs()),
                                tensor("topkIdx", rank.topkIdx()),
                                tensor("topkWeights", rank.weights()),
                                handle)
                        .out(tensor("out", out))
                        .waitCostStats(tensor("waitCostStats", waits))
                        .format(flag("fp8") ? CombineFormat.FP8 : CombineFormat.LOGFMT)
                        .receiveHook(flag("receiveHook"));
        if (next()) {
            plan.numSms(tensors.spoil("numSms", 1));
        }
        return plan.build();
    }
}
