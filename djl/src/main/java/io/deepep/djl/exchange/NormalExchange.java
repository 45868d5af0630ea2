package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.djl.TorchTensors;

/**
 * Normal mode in the expanded layout: rows come grouped by expert, so each expert gets one slice.
 * Rows are weighed here, before they are rounded to BF16; combine sums.
 */
final class NormalExchange extends StagedExchange {
    /** Owns {@link #outputs} alone, to free them at once. Null before the first call. */
    private NDManager outputsOwner;

    /**
     * The weighed results of a call, BF16 in the first rows. The next call may write to them: its
     * experts come after the combine in libtorch's order.
     */
    private Tensor outputs;

    NormalExchange(Buffer buffer, Transport transport) {
        super(buffer, transport, "normal");
    }

    /** The tokens as they travel, and the plan over them. */
    private final class NormalStaging extends Staging {
        private final Tensor tokens;

        /** Null without FP8. */
        private final Tensor scales;

        private final DispatchPlan dispatch;

        NormalStaging(Shapes shapes, NDManager manager) {
            super(shapes, manager);
            boolean fp8 = transport == Transport.FP8;
            int channels = channels(shapes.hidden());
            tokens = allocate(fp8 ? DType.FP8_E4M3 : DType.BF16, channels);
            scales = fp8 ? allocate(DType.F32, Fp8Rows.numScales(channels)) : null;
            dispatch =
                    DispatchPlan.builder(tokens, scales)
                            .topk(topkIdx, topkWeights, shapes.numExperts())
                            .expanded(true)
                            .build();
        }

        @Override
        void run(NDArray x, LocalExperts experts, Runnable meanwhile, NDManager scope) {
            take(x, scope);
            DispatchResult received = order.dispatch(options -> buffer.dispatch(dispatch, options));
            counters.sent(x.getShape().get(0));
            order.afterDispatch(received.event(), meanwhile);
            Tensor results = outputs(received.recvX().size(0), shapes);
            ExpertRows rows = ExpertRows.packed(received, results, x.getDataType(), scope);
            runExperts(experts, rows);
            counters.rows(rows.counts());
            CombinePlan plan = CombinePlan.builder(results, received.handle()).out(out).build();
            order.combine(options -> buffer.combine(plan, options).event());
        }

        private void take(NDArray x, NDManager scope) {
            long count = x.getShape().get(0);
            if (count == 0) {
                return;
            }
            NDArray rows = firstRows(tokens, count, scope);
            if (scales == null) {
                TorchTensors.cast(x, rows);
            } else {
                Fp8Rows.quantize(x, rows, firstRows(scales, count, scope), scope);
            }
        }
    }

    @Override
    int maxTokens() {
        var limits = buffer.options().normal();
        return limits == null ? Integer.MAX_VALUE : limits.maxTokens();
    }

    @Override
    Staging stage(Shapes shapes, NDManager manager) {
        return new NormalStaging(shapes, manager);
    }

    /** Memory for the results of rows. */
    private Tensor outputs(long count, Shapes shapes) {
        int hidden = shapes.hidden();
        if (outputs == null || outputs.size(0) < count || outputs.size(1) != hidden) {
            free();
            outputsOwner = NDManager.newBaseManager(shapes.device(), "PyTorch");
            outputs =
                    TorchTensors.borrow(
                            TorchTensors.empty(
                                    outputsOwner, DType.BF16, nextPowerOfTwo(count), hidden));
        }
        return outputs.slice(0, 0, count);
    }

    @Override
    void free() {
        outputs = null;
        if (outputsOwner != null) {
            outputsOwner.close();
        }
    }
}
