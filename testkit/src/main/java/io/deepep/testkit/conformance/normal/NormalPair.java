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

    private final RankContext context;
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

    NormalPair(NormalRank memory, DispatchPlan.Builder plan, Home home, CallOptions options) {
        this.context = memory.context();
        this.home = home;
        this.options = options;
        this.memory = memory;
        this.expected = memory;
        this.plan = plan.build();
    }

    /** Of BF16 rows, in worst-case mode. */
    public static NormalPair worstCase(
            RankContext context, NormalWorld first, int rows, CallOptions options) {
        NormalRank memory = new NormalRank(context, first).expecting(first.check().worstCase(rows));
        return new NormalPair(memory, memory.plan(), Home.BF16, options);
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
        expected = memory.of(world);
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
