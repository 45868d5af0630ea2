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
final class LowLatencyExchange extends StagedExchange {
    LowLatencyExchange(Buffer buffer, Transport transport) {
        super(buffer, transport, "low-latency");
    }

    /** The tokens as BF16, and the plan over them. */
    private final class LowLatencyStaging extends Staging {
        private final Tensor tokens;
        private final LowLatencyDispatchPlan dispatch;

        LowLatencyStaging(Shapes shapes, NDManager manager) {
            super(shapes, manager);
            tokens = allocate(DType.BF16, shapes.hidden());
            LowLatencyFormat format =
                    transport == Transport.FP8 ? LowLatencyFormat.FP8 : LowLatencyFormat.BF16;
            dispatch = LowLatencyDispatchPlan.builder(tokens, topkIdx).format(format).build();
        }

        @Override
        void run(NDArray x, LocalExperts experts, Runnable meanwhile, NDManager scope) {
            long count = x.getShape().get(0);
            if (count > 0) {
                TorchTensors.cast(x, firstRows(tokens, count, scope));
            }
            LowLatencyDispatchResult received =
                    order.dispatch(options -> buffer.lowLatencyDispatch(dispatch, options));
            counters.sent(count);
            order.afterDispatch(received.event(), meanwhile);
            Tensor outputs = buffer.getLowLatencyCombineBuffer(received.handle());
            runExperts(experts, ExpertRows.inSlots(received, outputs, x.getDataType(), scope));
            LowLatencyCombinePlan plan =
                    LowLatencyCombinePlan.builder(outputs, topkIdx, topkWeights, received.handle())
                            .out(out)
                            .build();
            order.combine(options -> buffer.lowLatencyCombine(plan, options).event());
        }
    }

    @Override
    int maxTokens() {
        var limits = buffer.options().lowLatency();
        return limits == null ? Integer.MAX_VALUE : limits.maxTokens();
    }

    @Override
    Staging stage(Shapes shapes, NDManager manager) {
        return new LowLatencyStaging(shapes, manager);
    }
}
