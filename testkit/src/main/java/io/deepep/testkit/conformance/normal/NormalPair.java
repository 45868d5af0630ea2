package io.deepep.testkit.conformance.normal;

import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RepeatedCalls;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.function.UnaryOperator;

/** A dispatch and a combine of one rank. */
public final class NormalPair implements RepeatedCalls<NormalWorld> {
    /** How rows are given to a combine, and travel. */
    enum Home {
        BF16(CombineFormat.BF16),
        CAST(CombineFormat.FP8),
        FP8(CombineFormat.FP8),
        FP8_IN_PLACE(CombineFormat.FP8);

        final CombineFormat format;

        Home(CombineFormat format) {
            this.format = format;
        }
    }

    /** A form in which tokens are dispatched, and what comes of it. */
    record Form(
            UnaryOperator<DispatchPlan.Builder> plan, UnaryOperator<NormalDispatchCheck> check) {
        static Form worstCase(int rows) {
            return new Form(plan -> plan.numWorstTokens(rows), check -> check.worstCase(rows));
        }
    }

    private final RankContext context;
    private final Form form;
    private final Home home;
    private final CallOptions options;
    private final NormalRank memory;
    private final DispatchPlan plan;
    private NormalRank expected;
    private Tensor outputs;
    private Tensor scales;
    private CombinePlan back;
    private DispatchResult received;
    private CombineResult combined;

    NormalPair(RankContext context, NormalWorld first, Form form, Home home, CallOptions options) {
        this.context = context;
        this.form = form;
        this.home = home;
        this.options = options;
        this.memory = rankOf(first);
        this.expected = memory;
        this.plan = form.plan().apply(memory.plan()).build();
    }

    /** Of BF16 rows, in worst-case mode. */
    public NormalPair(RankContext context, NormalWorld first, int rows, CallOptions options) {
        this(context, first, Form.worstCase(rows), Home.BF16, options);
    }

    private NormalRank rankOf(NormalWorld world) {
        return new NormalRank(context, world).expecting(form.check().apply(world.check()));
    }

    NormalRank memory() {
        return memory;
    }

    DispatchResult received() {
        return received;
    }

    CombineResult combined() {
        return combined;
    }

    @Override
    public void enqueue() {
        received = context.buffer().dispatch(plan, options);
        if (back == null) {
            back = firstHome();
        }
        combined = context.buffer().combine(back, options);
    }

    private CombinePlan firstHome() {
        ScaledRows rows =
                switch (home) {
                    case BF16, CAST -> null;
                    case FP8 -> expected.upload(expected.fp8Outputs());
                    case FP8_IN_PLACE ->
                            expected.inBuffer(expected.fp8Outputs(), received.handle());
                };
        outputs = rows == null ? expected.outputs() : rows.elements();
        scales = rows == null ? null : rows.scales();
        return CombinePlan.builder(outputs, received.handle())
                .scales(scales)
                .format(home.format)
                .build();
    }

    @Override
    public void load(NormalWorld world) {
        expected = rankOf(world);
        memory.load(expected);
        if (scales != null) {
            memory.write(expected.fp8Outputs(), new ScaledRows(outputs, scales));
        } else if (outputs != null) {
            context.copy(expected.outputs(), outputs);
        }
    }

    @Override
    public void verify() {
        expected.verify(received);
        expected.verify(combined, home.format, expected.world().outputs(expected.check()));
    }
}
