package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;

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
        order.afterDispatch(received.event(), meanwhile);
        // The counts are wanted here, and a copy to the host that waits for peers holds up all
        // ranks of the GPU.
        received.event().synchronize();
        Tensor outputs = buffer.getLowLatencyCombineBuffer(received.handle());
        runExperts(received, outputs, x.getDataType(), experts, scope);
        LowLatencyCombinePlan plan =
                LowLatencyCombinePlan.builder(
                                outputs, staged.topkIdx, staged.topkWeights, received.handle())
                        .out(staged.out)
                        .build();
        order.afterCombine(buffer.lowLatencyCombine(plan, order.beforeCombine()).event());
    }

    private static void runExperts(
            LowLatencyDispatchResult received,
            Tensor outputs,
            DataType type,
            LocalExperts experts,
            NDManager scope) {
        int[] counts = TorchTensors.arrayOf(scope, received.recvCount()).toIntArray();
        for (int e = 0; e < counts.length; e++) {
            if (counts[e] > 0) {
                NDArray rows = TorchTensors.arrayOf(scope, slots(received.recvX(), e, counts[e]));
                if (received.recvScales() != null) {
                    NDArray scales =
                            TorchTensors.arrayOf(scope, slots(received.recvScales(), e, counts[e]));
                    rows = Fp8Rows.dequantize(rows, scales);
                }
                TorchTensors.cast(
                        experts.run(e, rows.toType(type, false)),
                        TorchTensors.arrayOf(scope, slots(outputs, e, counts[e])));
            }
        }
    }

    /** The rows of one expert that are in use. */
    private static Tensor slots(Tensor perExpert, int localExpert, long count) {
        return perExpert.select(0, localExpert).slice(0, 0, count);
    }
}
