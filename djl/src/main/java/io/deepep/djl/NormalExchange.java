package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;

/**
 * Normal mode in the expanded layout: rows come grouped by expert, so each expert gets one slice.
 * Rows are weighed here, before they are rounded to BF16; combine sums.
 */
final class NormalExchange extends StagedExchange<NormalExchange.NormalStaging> {
    NormalExchange(Buffer buffer, Transport transport) {
        super(buffer, transport, "normal");
    }

    /** The tokens as they travel, and the plan over them. */
    static final class NormalStaging extends StagedExchange.Staging {
        final Tensor tokens;
        final Tensor scales;
        final DispatchPlan dispatch;

        NormalStaging(Shapes shapes, Transport transport) {
            super(shapes);
            boolean fp8 = transport == Transport.FP8;
            tokens = allocate(fp8 ? DType.FP8_E4M3 : DType.BF16, shapes.hidden());
            scales = fp8 ? allocate(DType.F32, Fp8Rows.numScales(shapes.hidden())) : null;
            dispatch =
                    DispatchPlan.builder(tokens, scales)
                            .topk(topkIdx, topkWeights, shapes.numExperts())
                            .expanded(true)
                            .build();
        }

        void take(NDArray x, NDManager scope) {
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
    NormalStaging stage(Shapes shapes) {
        return new NormalStaging(shapes, transport);
    }

    @Override
    void run(
            NormalStaging staged,
            NDArray x,
            LocalExperts experts,
            CallOrder order,
            Runnable meanwhile,
            NDManager scope) {
        staged.take(x, scope);
        DispatchResult received = buffer.dispatch(staged.dispatch, order.beforeDispatch());
        order.afterDispatch(received.event(), meanwhile);
        NDArray outputs = runExperts(received, x, experts, scope);
        CombinePlan plan =
                CombinePlan.builder(TorchTensors.tensorOf(outputs), received.handle())
                        .out(staged.out)
                        .build();
        order.afterCombine(buffer.combine(plan, order.beforeCombine()).event());
    }

    private static NDArray runExperts(
            DispatchResult received, NDArray x, LocalExperts experts, NDManager scope) {
        int numRows = received.numRecvTokens();
        NDArray outputs = TorchTensors.empty(scope, DType.BF16, numRows, received.recvX().size(1));
        Tensor outputRows = TorchTensors.tensorOf(outputs);
        Tensor counts = received.numRecvTokensPerExpert();
        long first = 0;
        for (int e = 0; e < counts.size(0); e++) {
            long count = counts.getLong(e);
            if (count > 0) {
                NDArray rows = rows(received, first, count, x, scope);
                Tensor weights = received.recvTopkWeights().slice(0, first, count);
                NDArray weighed =
                        experts.run(e, rows)
                                .mul(
                                        TorchTensors.arrayOf(scope, weights)
                                                .reshape(count, 1)
                                                .toType(x.getDataType(), false));
                TorchTensors.cast(
                        weighed, TorchTensors.arrayOf(scope, outputRows.slice(0, first, count)));
            }
            first += count;
        }
        return outputs;
    }

    private static NDArray rows(
            DispatchResult received, long first, long count, NDArray x, NDManager scope) {
        NDArray rows = TorchTensors.arrayOf(scope, received.recvX().slice(0, first, count));
        if (received.recvScales() == null) {
            return rows.toType(x.getDataType(), false);
        }
        NDArray scales = TorchTensors.arrayOf(scope, received.recvScales().slice(0, first, count));
        return Fp8Rows.dequantize(rows, scales).toType(x.getDataType(), false);
    }
}
