package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.djl.TorchTensors;

/**
 * Low-latency mode: tokens go out as BF16 and are cast on the way, experts write into the buffer's
 * own combine memory, combine weighs.
 */
final class LowLatencyExchange extends StagedExchange<LowLatencyExchange.LowLatencyStaging> {
    LowLatencyExchange(Buffer buffer, Transport transport) {
        super(buffer, transport, "low-latency");
    }

    /** The tokens as BF16, and the plan over them. */
    static final class LowLatencyStaging extends StagedExchange.Staging {
        final Tensor tokens;
        final LowLatencyDispatchPlan dispatch;

        LowLatencyStaging(Shapes shapes, Transport transport) {
            super(shapes);
            tokens = allocate(DType.BF16, shapes.hidden());
            dispatch =
                    LowLatencyDispatchPlan.builder(tokens, topkIdx)
                            .format(
                                    transport == Transport.FP8
                                            ? LowLatencyFormat.FP8
                                            : LowLatencyFormat.BF16)
                            .build();
        }
    }

    @Override
    int maxTokens() {
        var limits = buffer.options().lowLatency();
        return limits == null ? Integer.MAX_VALUE : limits.maxTokens();
    }

    @Override
    LowLatencyStaging stage(Shapes shapes) {
        return new LowLatencyStaging(shapes, transport);
    }

    @Override
    void run(
            LowLatencyStaging staged,
            NDArray x,
            LocalExperts experts,
            CallOrder order,
            Runnable meanwhile,
            NDManager scope) {
        long count = x.getShape().get(0);
        if (count > 0) {
            TorchTensors.cast(x, firstRows(staged.tokens, count, scope));
        }
        LowLatencyDispatchResult received =
                buffer.lowLatencyDispatch(staged.dispatch, order.beforeDispatch());
        sent(x);
        order.afterDispatch(received.event(), meanwhile);
        Tensor outputs = buffer.getLowLatencyCombineBuffer(received.handle());
        run(experts, ExpertRows.inSlots(received, outputs, x.getDataType(), scope));
        LowLatencyCombinePlan plan =
                LowLatencyCombinePlan.builder(
                                outputs, staged.topkIdx, staged.topkWeights, received.handle())
                        .out(staged.out)
                        .build();
        order.afterCombine(buffer.lowLatencyCombine(plan, order.beforeCombine()).event());
    }
}
