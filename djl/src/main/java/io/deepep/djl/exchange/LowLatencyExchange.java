package io.deepep.djl.exchange;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.djl.TorchTensors;
import java.util.HashMap;
import java.util.Map;

/**
 * Low-latency mode: tokens go out as BF16 and are cast on the way, experts write into the buffer's
 * own combine memory, combine weighs.
 */
final class LowLatencyExchange extends StagedExchange {
    /** Owns {@link #uncounted}. Null before there are any. */
    private NDManager owner;

    /**
     * Rows of each expert that the host has not waited for, INT32 [El] for each number of experts:
     * it reads them when all is over, because a copy that waits would hold up all ranks of the GPU.
     */
    private final Map<Shape, NDArray> uncounted = new HashMap<>();

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
            NDArray inUse = TorchTensors.arrayOf(scope, received.recvCount());
            ExpertRows rows = ExpertRows.inSlots(received, inUse, outputs, x.getDataType(), scope);
            runExperts(experts, rows);
            count(rows.knownCounts(), inUse);
            LowLatencyCombinePlan plan =
                    LowLatencyCombinePlan.builder(outputs, topkIdx, topkWeights, received.handle())
                            .out(out)
                            .build();
            order.combine(options -> buffer.lowLatencyCombine(plan, options).event());
        }
    }

    private void count(int[] known, NDArray inUse) {
        if (known != null) {
            counters.rows(known);
            return;
        }
        NDArray before = uncounted.get(inUse.getShape());
        if (before != null) {
            before.addi(inUse);
            return;
        }
        NDArray first = inUse.duplicate();
        first.attach(owner(inUse.getDevice()));
        uncounted.put(inUse.getShape(), first);
    }

    private NDManager owner(Device device) {
        if (owner == null) {
            owner = NDManager.newBaseManager(device, "PyTorch");
        }
        return owner;
    }

    @Override
    void ended() {
        for (NDArray rows : uncounted.values()) {
            counters.rows(rows.toIntArray());
            rows.close();
        }
        uncounted.clear();
    }

    @Override
    void free() {
        if (owner != null) {
            owner.close();
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
