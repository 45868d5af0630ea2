package io.deepep.djl.decoder;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import io.deepep.Buffer;
import io.deepep.Graph;
import io.deepep.djl.TorchStreams;
import io.deepep.djl.TorchTensors;

/**
 * Computes the logits of every slot's next token, for slots in use or not: always the same
 * operations on the same memory. So where exchanges can be captured, a graph of them is launched
 * from the third step on.
 */
final class DecodingStep implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(DecodingStep.class.getName());

    /** A low-latency dispatch takes one of two memories in turn, and prepares for each. */
    private static final int STEPS_BEFORE_CAPTURE = 2;

    /** INT64 [slots], the last token of each. */
    final NDArray last;

    /** INT64 [slots], of {@link #last} in its sequence. */
    final NDArray positions;

    private final Model model;
    private final Buffer buffer;
    private final TwoModes exchange;
    private final DecoderOptions options;
    private final Device device;

    /** INT64 [slots], where a slot begins in the cache. */
    private final NDArray firstRows;

    private final NDArray allSlots;
    private final NDArray one;

    /** Not private, so that benchmarks can do without for a while. */
    boolean wantsGraph;

    /** Not the same on all ranks if one has failed where others have not. */
    private int numPrepared;

    private Graph graph;

    /** Owns what replays write. */
    private final NDManager captured;

    /** FLOAT32 [slots,V], of the latest replay; null without a graph. */
    private NDArray logits;

    DecodingStep(
            Model model,
            Buffer buffer,
            TwoModes exchange,
            DecoderOptions options,
            NDManager manager) {
        this.model = model;
        this.buffer = buffer;
        this.exchange = exchange;
        this.options = options;
        device = manager.getDevice();
        wantsGraph = options.graph();
        int numSlots = options.maxSequences();
        last = manager.create(new long[numSlots]);
        positions = manager.create(new long[numSlots]);
        allSlots = manager.arange(0, numSlots, 1, DataType.INT64);
        firstRows = allSlots.duplicate().muli(options.maxLength());
        one = manager.create(1L);
        captured = manager.newSubManager();
    }

    /** Has this thread compute on a stream that can be captured, if that is to be. */
    TorchStreams.Use useStream() {
        return usesGraph() ? TorchStreams.use(buffer.communicationStream()) : () -> {};
    }

    private boolean usesGraph() {
        return wantsGraph && exchange.isCapturable(device);
    }

    /**
     * FLOAT32 [slots,V] for {@link #last} at {@link #positions}, valid until the next step.
     * Collective.
     */
    NDArray logits(NDManager scope) {
        if (!usesGraph()) {
            return compute(scope);
        }
        if (graph == null && Decoder.onAllRanks(buffer, numPrepared >= STEPS_BEFORE_CAPTURE)) {
            capture();
        }
        if (graph == null) {
            NDArray computed = compute(scope);
            numPrepared++;
            return computed;
        }
        graph.replay();
        return view(scope, logits);
    }

    /** Every slot has one more token. */
    void advance() {
        positions.addi(one);
    }

    private NDArray compute(NDManager scope) {
        NDArray now = view(scope, positions);
        Pass pass = new Pass(scope, now, now.add(firstRows), null, options.type());
        return model.logits(view(scope, last), pass, allSlots);
    }

    /** What is computed from it belongs to {@code scope}. */
    private static NDArray view(NDManager scope, NDArray array) {
        return TorchTensors.arrayOf(scope, TorchTensors.borrow(array));
    }

    /** All ranks have graphs, or none; after an exception none, and the next step captures. */
    private void capture() {
        exchange.awaitLast(); // or its failure would be taken for one of the capture
        RuntimeException failure = null;
        try {
            graph = exchange.capture(device, this::computeCaptured);
        } catch (RuntimeException refused) {
            failure = refused;
        }
        boolean all = false;
        try {
            all = Decoder.onAllRanks(buffer, failure == null);
        } finally {
            if (!all) {
                close();
            }
        }
        if (!all) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a rank could not capture the decoding step; all go on without a graph, which takes longer",
                    failure);
            wantsGraph = false;
        }
    }

    private void computeCaptured() {
        try (NDManager scope = captured.newSubManager()) {
            logits = compute(scope);
            logits.attach(captured);
        }
    }

    /** Ends with the graph; the rest is the manager's. */
    @Override
    public void close() {
        if (graph != null) {
            graph.close();
            graph = null;
        }
        if (logits != null) {
            logits.close();
            logits = null;
        }
    }
}
