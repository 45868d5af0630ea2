package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Tensor;

/**
 * What both modes share: tokens are cast into staging memory of libtorch's that stays the same for
 * a number of tokens, so that requests over it are made once; and counting.
 */
abstract class StagedExchange<S extends StagedExchange.Staging> implements ExpertExchange {
    final Buffer buffer;
    final Transport transport;
    private final ExchangeCounters counters;
    private S staging;
    private boolean closed;

    StagedExchange(Buffer buffer, Transport transport, String mode) {
        this.buffer = buffer;
        this.transport = transport;
        this.counters = ExchangeCounters.register(buffer, mode);
    }

    /** The shape that staging memory is for. */
    record Shapes(Device device, int numTokens, int hidden, int numTopk, int numExperts) {}

    /** Inputs and output of the calls for one shape. */
    static class Staging {
        final Shapes shapes;
        final NDManager manager;
        final NDArray topkIdx;
        final NDArray topkWeights;
        final NDArray out;
        final Tensor topkIdxTensor;
        final Tensor topkWeightsTensor;
        final Tensor outTensor;

        Staging(Shapes shapes) {
            this.shapes = shapes;
            manager = NDManager.newBaseManager(shapes.device(), "PyTorch");
            topkIdx = TorchTensors.empty(manager, DType.I64, shapes.numTokens(), shapes.numTopk());
            topkWeights =
                    TorchTensors.empty(manager, DType.F32, shapes.numTokens(), shapes.numTopk());
            out = TorchTensors.empty(manager, DType.BF16, shapes.numTokens(), shapes.hidden());
            topkIdxTensor = TorchTensors.tensorOf(topkIdx);
            topkWeightsTensor = TorchTensors.tensorOf(topkWeights);
            outTensor = TorchTensors.tensorOf(out);
        }
    }

    @Override
    public final EpTopology topology() {
        return buffer.topology();
    }

    @Override
    public final NDArray exchange(
            NDArray x,
            NDArray topkIdx,
            NDArray topkWeights,
            int numExperts,
            LocalExperts experts,
            Runnable meanwhile) {
        if (closed) {
            throw new IllegalStateException(
                    "the exchange of rank " + topology().rank() + " is closed");
        }
        Shapes shapes = shapesOf(x, topkIdx, numExperts);
        if (staging == null || !staging.shapes.equals(shapes)) {
            release();
            staging = stage(shapes);
        }
        TorchTensors.cast(topkIdx, staging.topkIdx);
        TorchTensors.cast(topkWeights, staging.topkWeights);
        counters.begun(shapes.numTokens());
        long start = System.nanoTime();
        try (NDManager scope = x.getManager().newSubManager()) {
            run(staging, x, counted(experts, numExperts), meanwhile, scope);
        } catch (RuntimeException | Error failure) {
            counters.failed(failure);
            throw failure;
        }
        NDArray home = staging.out.toType(x.getDataType(), true);
        home.attach(x.getManager());
        counters.ended(System.nanoTime() - start);
        return home;
    }

    private LocalExperts counted(LocalExperts experts, int numExperts) {
        int numLocalExperts = numExperts / topology().numRanks();
        return (localExpert, rows) -> {
            long start = System.nanoTime();
            NDArray result = experts.run(localExpert, rows);
            if (!result.getShape().equals(rows.getShape())) {
                throw new IllegalArgumentException(
                        "expert "
                                + localExpert
                                + " of rank "
                                + topology().rank()
                                + " gave "
                                + result.getShape()
                                + " for "
                                + rows.getShape()
                                + "; an expert keeps the shape");
            }
            counters.expert(
                    localExpert,
                    numLocalExperts,
                    rows.getShape().get(0),
                    System.nanoTime() - start);
            return result;
        };
    }

    private static Shapes shapesOf(NDArray x, NDArray topkIdx, int numExperts) {
        Shape shape = x.getShape();
        if (shape.dimension() != 2
                || (x.getDataType() != DataType.FLOAT32 && x.getDataType() != DataType.FLOAT16)) {
            throw new IllegalArgumentException(
                    "x is "
                            + x.getDataType()
                            + " "
                            + shape
                            + "; the exchange takes FLOAT32 or FLOAT16 [T,H]");
        }
        return new Shapes(
                x.getDevice(),
                (int) shape.get(0),
                (int) shape.get(1),
                (int) topkIdx.getShape().get(1),
                numExperts);
    }

    abstract S stage(Shapes shapes);

    /** Dispatches {@code x}, runs the experts, combines into the staging's output. */
    abstract void run(
            S staged, NDArray x, LocalExperts experts, Runnable meanwhile, NDManager scope);

    private void release() {
        if (staging != null) {
            staging.manager.close();
            staging = null;
        }
    }

    @Override
    public final void close() {
        if (!closed) {
            closed = true;
            release();
            counters.close();
        }
    }
}
