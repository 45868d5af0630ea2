package io.deepep.djl.exchange;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.djl.TorchTensors;
import java.util.HashMap;
import java.util.Map;

/**
 * What both modes share: tokens are cast into staging memory of libtorch's, over which plans are
 * made once; and counting. There is staging for numbers of tokens that are powers of two: a call
 * takes the next larger one, whose other tokens choose no expert, so that a changing number of
 * tokens allocates nothing.
 */
abstract class StagedExchange implements ExpertExchange {
    private static final long NO_EXPERT = -1;

    /** 16 bytes of BF16, in which results come home in both modes. */
    private static final int HIDDEN_MULTIPLE = 8;

    final Buffer buffer;
    final Transport transport;
    final ExchangeCounters counters;
    private final Map<Shapes, Staging> stagings = new HashMap<>();

    /** Null before the first exchange. Not private, so that a test can take another. */
    CallOrder order;

    private boolean closed;

    StagedExchange(Buffer buffer, Transport transport, String mode) {
        this.buffer = buffer;
        this.transport = transport;
        this.counters = new ExchangeCounters(buffer, mode);
    }

    /** The shape that staging memory is for; T is the most tokens that it takes. */
    record Shapes(Device device, int numTokens, int hidden, int numTopk, int numExperts) {}

    /** Inputs and output of the calls for one shape, freed when their manager is closed. */
    abstract static class Staging {
        final Shapes shapes;
        final NDManager manager;
        final Tensor topkIdx;
        final Tensor topkWeights;

        /** What a combine writes. */
        final Tensor out;

        private final Tensor noExperts;

        /** Tokens of the call before; the indices behind them are all {@link #NO_EXPERT}. */
        private int numTaken;

        Staging(Shapes shapes, NDManager manager) {
            this.shapes = shapes;
            this.manager = manager;
            int numTokens = shapes.numTokens();
            topkIdx = allocate(DType.I64, shapes.numTopk());
            topkWeights = allocate(DType.F32, shapes.numTopk());
            out = allocate(DType.BF16, shapes.hidden());
            Shape indices = new Shape(numTokens, shapes.numTopk());
            noExperts = TorchTensors.borrow(manager.zeros(indices, DataType.INT64).add(NO_EXPERT));
            numTaken = numTokens;
        }

        final Tensor allocate(DType dtype, int columns) {
            return TorchTensors.borrow(
                    TorchTensors.empty(manager, dtype, shapes.numTokens(), columns));
        }

        /** Takes the routing of as many tokens as there are. */
        void take(NDArray givenIdx, NDArray givenWeights, NDManager scope) {
            int count = (int) givenIdx.getShape().get(0);
            if (count > 0) {
                TorchTensors.cast(givenIdx, firstRows(topkIdx, count, scope));
                TorchTensors.cast(givenWeights, firstRows(topkWeights, count, scope));
            }
            if (count < numTaken) {
                TorchTensors.cast(
                        TorchTensors.arrayOf(scope, noExperts.slice(0, count, numTaken - count)),
                        TorchTensors.arrayOf(scope, topkIdx.slice(0, count, numTaken - count)));
            }
            numTaken = count;
        }

        /** Dispatches {@code x}, runs the experts, combines into {@link #out}. */
        abstract void run(NDArray x, LocalExperts experts, Runnable meanwhile, NDManager scope);
    }

    /** An array over the rows that the tokens of a call take. */
    static NDArray firstRows(Tensor staged, long count, NDManager scope) {
        return TorchTensors.arrayOf(scope, staged.slice(0, 0, count));
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
        requireOpen();
        requireTokens(x);
        requireRouting(x.getShape().get(0), topkIdx.getShape(), topkWeights.getShape());
        counters.begun();
        long start = System.nanoTime();
        try (NDManager scope = x.getManager().newSubManager()) {
            Staging staging =
                    stagings.computeIfAbsent(shapesOf(x, topkIdx, numExperts), this::staged);
            staging.take(topkIdx, topkWeights, scope);
            staging.run(x, experts, meanwhile, scope);
            NDArray home = home(staging.out, x, scope);
            counters.ended(System.nanoTime() - start);
            return home;
        } catch (RuntimeException | Error failure) {
            counters.failed(failure);
            throw failure;
        }
    }

    final void requireOpen() {
        if (closed) {
            throw new IllegalStateException(
                    "the exchange of rank " + topology().rank() + " is closed");
        }
    }

    /** The order of calls, made before the first. */
    final CallOrder order(Device device) {
        if (order == null) {
            order = CallOrder.of(buffer, device);
        }
        return order;
    }

    private static NDArray home(Tensor results, NDArray x, NDManager scope) {
        long count = x.getShape().get(0);
        NDArray home =
                count == 0
                        ? scope.create(x.getShape(), x.getDataType())
                        : firstRows(results, count, scope).toType(x.getDataType(), true);
        home.attach(x.getManager());
        return home;
    }

    /** Runs this rank's experts. */
    final void runExperts(LocalExperts experts, ExpertRows rows) {
        long start = System.nanoTime();
        rows.runOn(experts);
        counters.experts(System.nanoTime() - start);
    }

    private static void requireTokens(NDArray x) {
        Shape shape = x.getShape();
        if (shape.dimension() != 2
                || (x.getDataType() != DataType.FLOAT32 && x.getDataType() != DataType.FLOAT16)) {
            throw new IllegalArgumentException(
                    "x is %s %s; it must be FLOAT32 or FLOAT16 [T,H]"
                            .formatted(x.getDataType(), shape));
        }
        if (shape.get(1) % HIDDEN_MULTIPLE != 0) {
            throw new IllegalArgumentException(
                    "hidden=%s is not a multiple of %s: add zeros to the tokens, and leave them out of the result"
                            .formatted(shape.get(1), HIDDEN_MULTIPLE));
        }
    }

    /** Tokens without a row in the routing would have no experts, and come back as zeros. */
    private static void requireRouting(long numTokens, Shape topkIdx, Shape topkWeights) {
        if (topkIdx.dimension() != 2
                || topkIdx.get(0) != numTokens
                || !topkIdx.equals(topkWeights)) {
            throw new IllegalArgumentException(
                    "topkIdx is %s and topkWeights %s; both must be [T,K], where x has T=%s tokens"
                            .formatted(topkIdx, topkWeights, numTokens));
        }
    }

    private Shapes shapesOf(NDArray x, NDArray topkIdx, int numExperts) {
        return new Shapes(
                x.getDevice(),
                stagedTokens((int) x.getShape().get(0)),
                (int) x.getShape().get(1),
                (int) topkIdx.getShape().get(1),
                numExperts);
    }

    /** The next power of two, for memory that is to serve other numbers too. */
    static long nextPowerOfTwo(long count) {
        return Long.highestOneBit(2 * Math.max(count, 1) - 1);
    }

    /** The next power of two within the limit. Refused here, before this rank meets others. */
    private int stagedTokens(int numTokens) {
        int most = maxTokens();
        if (numTokens > most) {
            throw new IllegalArgumentException(
                    ("x has %s tokens, more than maxTokens=%s; open the buffer with higher limits, or exchange"
                                    + " them in parts")
                            .formatted(numTokens, most));
        }
        return (int) Math.min(most, nextPowerOfTwo(numTokens));
    }

    /** Of tokens as they travel: FP8 has a scale for each whole block of channels. */
    final int channels(int hidden) {
        return transport == Transport.FP8 ? ExpertExchange.paddedHidden(hidden) : hidden;
    }

    /** Tokens that a rank may send at once. */
    abstract int maxTokens();

    /**
     * Staging memory for a shape.
     *
     * @param manager owns it
     */
    abstract Staging stage(Shapes shapes, NDManager manager);

    private Staging staged(Shapes shapes) {
        if (order(shapes.device()).isCapturing()) {
            throw new IllegalStateException(
                    "the first exchange of a shape allocates and cannot go into a graph; make it once before the capture");
        }
        NDManager manager = NDManager.newBaseManager(shapes.device(), "PyTorch");
        try {
            return stage(shapes, manager);
        } catch (Throwable refused) {
            manager.close();
            throw refused;
        }
    }

    @Override
    public final void awaitLast() {
        try {
            if (order != null) {
                order.end();
                ended();
            }
        } catch (RuntimeException | Error failure) {
            counters.failed(failure);
            throw failure;
        }
    }

    /** All that this rank has enqueued for exchanges is over. */
    void ended() {}

    /** Frees what all stagings have in common. */
    void free() {}

    @Override
    public final void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            awaitLast();
        } finally {
            stagings.values().forEach(staging -> staging.manager.close());
            stagings.clear();
            free();
            counters.close();
        }
    }
}
