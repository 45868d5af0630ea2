package io.deepep.djl.exchange;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Graph;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.djl.TorchGraph;
import io.deepep.djl.TorchTensors;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Low-latency mode: tokens go out as BF16 and are cast on the way, experts write into the buffer's
 * own combine memory, combine weighs.
 */
final class LowLatencyExchange extends StagedExchange {
    private static final int MOST_COMBINES = 8;

    /** Null before the first exchange. */
    private Uncounted uncounted;

    LowLatencyExchange(Buffer buffer, Transport transport) {
        super(buffer, transport, "low-latency");
    }

    /** The tokens as BF16, and the plan over them. */
    private final class LowLatencyStaging extends Staging {
        /** Of those that travel, the tokens' own channels; with FP8, zeros may be behind them. */
        private final Tensor tokens;

        private final LowLatencyDispatchPlan dispatch;

        /** One for each memory that a dispatch may take. */
        private final Map<LowLatencyHandle, LowLatencyCombinePlan> combines = new HashMap<>();

        LowLatencyStaging(Shapes shapes, NDManager manager) {
            super(shapes, manager);
            Tensor travelling = allocate(DType.BF16, channels(shapes.hidden()));
            clear(travelling, manager);
            tokens = travelling.slice(1, 0, shapes.hidden());
            LowLatencyFormat format =
                    transport == Transport.FP8 ? LowLatencyFormat.FP8 : LowLatencyFormat.BF16;
            dispatch = LowLatencyDispatchPlan.builder(travelling, topkIdx).format(format).build();
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
            LowLatencyCombinePlan combine = combineOf(received.handle());
            NDArray inUse = TorchTensors.arrayOf(scope, received.recvCount());
            ExpertRows rows =
                    ExpertRows.inSlots(
                            received,
                            order.isCapturing(),
                            inUse,
                            combine.x(),
                            x.getDataType(),
                            scope);
            runExperts(experts, rows);
            if (rows.knownCounts() == null) {
                uncounted.add(inUse);
            } else {
                counters.rows(rows.knownCounts());
            }
            order.combine(options -> buffer.lowLatencyCombine(combine, options).event());
        }

        private LowLatencyCombinePlan combineOf(LowLatencyHandle handle) {
            LowLatencyCombinePlan known = combines.get(handle);
            if (known != null) {
                return known;
            }
            if (combines.size() == MOST_COMBINES) {
                combines.clear(); // a dispatch that was not combined has another handle next time
            }
            Tensor outputs = buffer.getLowLatencyCombineBuffer(handle).slice(2, 0, shapes.hidden());
            LowLatencyCombinePlan plan =
                    LowLatencyCombinePlan.builder(outputs, topkIdx, topkWeights, handle)
                            .out(out)
                            .build();
            combines.put(handle, plan);
            return plan;
        }
    }

    private static void clear(Tensor tensor, NDManager manager) {
        try (NDManager scope = manager.newSubManager()) {
            TorchTensors.cast(
                    scope.zeros(new Shape(tensor.shape())), TorchTensors.arrayOf(scope, tensor));
        }
    }

    /**
     * Rows of each expert that the host does not wait for, since the exchange is there: it reads
     * them when all is over, because a copy that waits would hold up all ranks of the GPU. Replays
     * add to them too.
     */
    private final class Uncounted implements AutoCloseable {
        private final NDManager manager;

        /** INT32 [El]. */
        private final NDArray sums;

        private final int[] told;

        Uncounted(Device device, int numLocalExperts) {
            manager = NDManager.newBaseManager(device, "PyTorch");
            sums = manager.zeros(new Shape(numLocalExperts), DataType.INT32);
            told = new int[numLocalExperts];
        }

        void add(NDArray inUse) {
            sums.addi(inUse);
        }

        void tell() {
            int[] now = sums.toIntArray();
            int[] since = new int[now.length];
            Arrays.setAll(since, e -> now[e] - told[e]);
            counters.rows(since);
            System.arraycopy(now, 0, told, 0, now.length);
        }

        @Override
        public void close() {
            manager.close();
        }
    }

    @Override
    void ended() {
        if (uncounted != null) {
            uncounted.tell();
        }
    }

    @Override
    public boolean isCapturable(Device device) {
        return TorchGraph.isAvailable(device);
    }

    @Override
    public Graph capture(Device device, Runnable work) {
        requireOpen();
        awaitLast(); // or its failure would be one of the capture
        ExchangeCounters.Tally tally = counters.beginCapture();
        try {
            return order(device).capture(work, this::requireOpen, () -> counters.replayed(tally));
        } finally {
            counters.endCapture();
        }
    }

    @Override
    void free() {
        if (uncounted != null) {
            uncounted.close();
        }
    }

    @Override
    int maxTokens() {
        var limits = buffer.options().lowLatency();
        return limits == null ? Integer.MAX_VALUE : limits.maxTokens();
    }

    @Override
    Staging stage(Shapes shapes, NDManager manager) {
        requireExperts(shapes.numExperts());
        if (uncounted == null) {
            uncounted = new Uncounted(shapes.device(), shapes.numExperts() / topology().numRanks());
        }
        return new LowLatencyStaging(shapes, manager);
    }

    /** The buffer spreads as many experts over the ranks as its limits say. */
    private void requireExperts(int numExperts) {
        var limits = buffer.options().lowLatency();
        if (limits != null && numExperts != limits.numExperts()) {
            throw new IllegalArgumentException(
                    ("numExperts=%s, but the low-latency limits of the buffer have numExperts=%s; open it with those of"
                                    + " the layer")
                            .formatted(numExperts, limits.numExperts()));
        }
    }
}
