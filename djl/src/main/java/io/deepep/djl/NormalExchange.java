package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Buffer;
import io.deepep.CombineRequest;
import io.deepep.DType;
import io.deepep.DispatchRequest;
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

    /** The tokens as they travel, and the request over them. */
    static final class NormalStaging extends StagedExchange.Staging {
        final NDArray tokens;
        final NDArray scales;
        final DispatchRequest dispatch;

        NormalStaging(Shapes shapes, Transport transport) {
            super(shapes);
            boolean fp8 = transport == Transport.FP8;
            tokens =
                    TorchTensors.empty(
                            manager,
                            fp8 ? DType.FP8_E4M3 : DType.BF16,
                            shapes.numTokens(),
                            shapes.hidden());
            scales =
                    fp8
                            ? TorchTensors.empty(
                                    manager,
                                    DType.F32,
                                    shapes.numTokens(),
                                    Fp8Rows.numScales(shapes.hidden()))
                            : null;
            DispatchRequest.Builder request =
                    DispatchRequest.builder(TorchTensors.tensorOf(tokens))
                            .topk(topkIdxTensor, topkWeightsTensor, shapes.numExperts())
                            .expanded(true);
            if (fp8) {
                request.scales(TorchTensors.tensorOf(scales));
            }
            dispatch = request.build();
        }
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
            Runnable meanwhile,
            NDManager scope) {
        if (transport == Transport.FP8) {
            Fp8Rows.quantize(x, staged.tokens, staged.scales, scope);
        } else {
            TorchTensors.cast(x, staged.tokens);
        }
        DispatchResult received =
                buffer.dispatch(staged.dispatch, TorchStreams.after(x.getDevice()));
        meanwhile.run();
        TorchStreams.await(x.getDevice(), received.event());
        NDArray outputs = runExperts(received, x, experts, scope);
        buffer.combine(
                CombineRequest.builder(TorchTensors.tensorOf(outputs), received.handle())
                        .out(staged.outTensor)
                        .build(),
                TorchStreams.between(x.getDevice()));
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
