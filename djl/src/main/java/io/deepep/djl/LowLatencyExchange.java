package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyDispatchRequest;
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

    /** The tokens as BF16, and the request over them. */
    static final class LowLatencyStaging extends StagedExchange.Staging {
        final NDArray tokens;
        final LowLatencyDispatchRequest dispatch;

        LowLatencyStaging(Shapes shapes, Transport transport) {
            super(shapes);
            tokens = TorchTensors.empty(manager, DType.BF16, shapes.numTokens(), shapes.hidden());
            dispatch =
                    LowLatencyDispatchRequest.builder(TorchTensors.tensorOf(tokens), topkIdxTensor)
                            .format(
                                    transport == Transport.FP8
                                            ? LowLatencyFormat.FP8
                                            : LowLatencyFormat.BF16)
                            .build();
        }
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
            Runnable meanwhile,
            NDManager scope) {
        TorchTensors.cast(x, staged.tokens);
        LowLatencyDispatchResult received =
                buffer.lowLatencyDispatch(staged.dispatch, TorchStreams.after(x.getDevice()));
        meanwhile.run();
        TorchStreams.await(x.getDevice(), received.event());
        Tensor outputs = buffer.getNextLowLatencyCombineBuffer(received.handle());
        runExperts(received, outputs, x.getDataType(), experts, scope);
        buffer.lowLatencyCombine(
                LowLatencyCombineRequest.builder(
                                outputs,
                                staged.topkIdxTensor,
                                staged.topkWeightsTensor,
                                received.handle())
                        .zeroCopy(true)
                        .out(staged.outTensor)
                        .build(),
                TorchStreams.between(x.getDevice()));
    }

    private static void runExperts(
            LowLatencyDispatchResult received,
            Tensor outputs,
            DataType type,
            LocalExperts experts,
            NDManager scope) {
        // Waits for the counts where they lie on a GPU.
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
