package io.deepep.djl;

import ai.djl.Device;
import ai.djl.MalformedModelException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.util.Pair;
import ai.djl.util.PairList;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.gate.DeepSeekV3Gate;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;

/**
 * A mixture-of-experts layer whose experts are spread over ranks. It runs the gate, dispatch, this
 * rank's experts and combine, and a shared expert while tokens travel. Input and output are FLOAT32
 * or FLOAT16 [...,H]; the number of tokens may differ between ranks and be 0.
 *
 * <p>Of E experts, rank r of R holds {@code r*E/R} to {@code (r+1)*E/R - 1}, and has only those as
 * children. The children are {@code gate}, {@code shared_experts} and {@code experts.N} with the
 * global number N, as in DeepSeek's checkpoints, so that {@link SafetensorsParameters} finds the
 * weights of a rank.
 *
 * <p>{@code forward} is collective: all ranks run it, in the same order of layers. Inference only:
 * dispatch and combine have no backward pass.
 */
public final class ExpertParallelMoE extends AbstractBlock {
    private static final byte VERSION = 1;

    private final int numExperts;
    private final ExpertExchange exchange;
    private final Block gate;
    private final Block sharedExpert;
    private final List<Block> experts = new ArrayList<>();

    /** All experts at once; null where they are blocks. */
    private final LocalExperts atOnce;

    /** Where the parameters were found to lie. */
    private Device device;

    private ExpertParallelMoE(Builder from) {
        super(VERSION);
        numExperts = from.numExperts;
        exchange = from.exchange;
        gate = addChildBlock("gate", from.gate);
        sharedExpert =
                from.sharedExpert == null
                        ? null
                        : addChildBlock("shared_experts", from.sharedExpert);
        atOnce = from.atOnce;
        int numBlocks = atOnce == null ? numLocalExperts() : 0;
        for (int e = firstExpert(); e < firstExpert() + numBlocks; e++) {
            experts.add(addChildBlock("experts." + e, from.experts.apply(e)));
        }
    }

    /**
     * Starts a layer.
     *
     * @param exchange this rank's exchange, which all layers of a model share
     * @param numExperts experts of all ranks, a multiple of the number of ranks
     */
    public static Builder builder(ExpertExchange exchange, int numExperts) {
        return new Builder(exchange, numExperts);
    }

    /** The first global expert of this rank. */
    public int firstExpert() {
        return exchange.topology().rank() * numLocalExperts();
    }

    /** Number of experts of this rank. */
    public int numLocalExperts() {
        return numExperts / exchange.topology().numRanks();
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        if (training) {
            throw new UnsupportedOperationException(
                    "ExpertParallelMoE has no backward pass; run it for inference (training=false)");
        }
        NDArray input = inputs.singletonOrThrow();
        Shape shape = input.getShape();
        long hidden = shape.dimension() == 0 ? 0 : shape.get(shape.dimension() - 1);
        if (hidden == 0) {
            throw new IllegalArgumentException(
                    "input has shape " + shape + ", but must be [...,H] with H channels");
        }
        if (!input.getDevice().equals(device)) {
            requireParametersOn(input.getDevice());
            device = input.getDevice();
        }
        NDArray x = input.stopGradient().reshape(shape.size() / hidden, hidden);
        NDList routing = gate.forward(store, new NDList(x), false);
        NDArray[] shared = new NDArray[1];
        NDArray routed =
                exchange.exchange(
                        x,
                        routing.get(0),
                        routing.get(1),
                        numExperts,
                        atOnce == null
                                ? LocalExperts.each((e, rows) -> run(experts.get(e), store, rows))
                                : atOnce,
                        () -> shared[0] = runShared(store, x));
        NDArray y = shared[0] == null ? routed : routed.add(shared[0]);
        return new NDList(y.reshape(shape));
    }

    /**
     * Parameters of another GPU would be copied on its stream in the middle of an exchange. If that
     * GPU's own rank has by then put a wait for this rank on the stream, neither goes on until the
     * time-out.
     */
    final void requireParametersOn(Device tokens) {
        for (Pair<String, Parameter> parameter : getParameters()) {
            Device its = parameter.getValue().getArray().getDevice();
            if (!its.equals(tokens)) {
                throw new IllegalStateException(
                        ("parameter %s is on %s, but the tokens are on %s; load the layer on the rank's device"
                                        + " (Model.newInstance(name, device, \"PyTorch\"))")
                                .formatted(parameter.getKey(), its, tokens));
            }
        }
    }

    private NDArray runShared(ParameterStore store, NDArray x) {
        return sharedExpert == null || x.getShape().get(0) == 0
                ? null
                : run(sharedExpert, store, x);
    }

    private static NDArray run(Block expert, ParameterStore store, NDArray rows) {
        return expert.forward(store, new NDList(rows), false).singletonOrThrow();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Shape input = inputShapes[0];
        Shape rows = new Shape(1, input.get(input.dimension() - 1));
        // Gates compute in FLOAT32.
        gate.initialize(manager, DataType.FLOAT32, rows);
        if (sharedExpert != null) {
            sharedExpert.initialize(manager, dataType, rows);
        }
        experts.forEach(expert -> expert.initialize(manager, dataType, rows));
    }

    /**
     * Writes the gate, the shared expert and this rank's experts. A single rank writes all experts,
     * so that a model that it saved can be loaded on any number of ranks.
     */
    @Override
    public void saveParameters(DataOutputStream out) throws IOException {
        requireBlocks();
        out.write(VERSION);
        saveMetadata(out);
        gate.saveParameters(out);
        out.writeBoolean(sharedExpert != null);
        if (sharedExpert != null) {
            sharedExpert.saveParameters(out);
        }
        ExpertRecords.save(experts, firstExpert(), numExperts, out);
    }

    /**
     * Reads what {@link #saveParameters} wrote. Experts of other ranks are skipped.
     *
     * @throws MalformedModelException if an expert of this rank is not in the stream
     */
    @Override
    public void loadParameters(NDManager manager, DataInputStream in)
            throws IOException, MalformedModelException {
        requireBlocks();
        loadMetadata(in.readByte(), in);
        gate.loadParameters(manager, in);
        if (in.readBoolean() != (sharedExpert != null)) {
            throw new MalformedModelException(
                    sharedExpert == null
                            ? "the model was saved with a shared expert; build the layer with one"
                            : "the model was saved without a shared expert; leave it out of the layer");
        }
        if (sharedExpert != null) {
            sharedExpert.loadParameters(manager, in);
        }
        ExpertRecords.load(experts, firstExpert(), numExperts, manager, in);
    }

    private void requireBlocks() {
        if (atOnce != null) {
            throw new UnsupportedOperationException(
                    "localExperts are not in DJL's parameter files; load them from their checkpoint");
        }
    }

    /** Builds a layer. */
    public static final class Builder {
        private final ExpertExchange exchange;
        private final int numExperts;
        private Block gate;
        private Block sharedExpert;
        private IntFunction<? extends Block> experts;
        private LocalExperts atOnce;

        private Builder(ExpertExchange exchange, int numExperts) {
            this.exchange = Objects.requireNonNull(exchange, "exchange");
            int numRanks = exchange.topology().numRanks();
            if (numExperts < 1 || numExperts % numRanks != 0) {
                throw new IllegalArgumentException(
                        "numExperts=%s is not a positive multiple of numRanks=%s"
                                .formatted(numExperts, numRanks));
            }
            this.numExperts = numExperts;
        }

        /**
         * The gate, with the same weights on every rank: a {@link SoftmaxGate}, a {@link
         * DeepSeekV3Gate}, or any block that computes {@code topkIdx} INT64 [T,K] and {@code
         * topkWeights} FLOAT32 [T,K] from tokens [T,H].
         */
        public Builder gate(Block block) {
            if (block instanceof ExpertGate known && known.rule().numExperts() != numExperts) {
                throw new IllegalArgumentException(
                        "the gate has numExperts=%s, but the layer has numExperts=%s"
                                .formatted(known.rule().numExperts(), numExperts));
            }
            this.gate = block;
            return this;
        }

        /**
         * The experts: any blocks that map rows [n,H] to [n,H].
         *
         * @param make called with the global number of each expert of this rank
         */
        public Builder experts(IntFunction<? extends Block> make) {
            this.experts = make;
            return this;
        }

        /**
         * The experts of this rank, run all at once, such as {@link SwiGluExperts}. They are not
         * part of DJL's parameter files.
         */
        public Builder localExperts(LocalExperts all) {
            this.atOnce = all;
            return this;
        }

        /** An expert that every token passes on its own rank; none by default. */
        public Builder sharedExpert(Block block) {
            this.sharedExpert = block;
            return this;
        }

        /** Builds the layer. */
        public ExpertParallelMoE build() {
            Objects.requireNonNull(gate, "gate");
            if ((experts == null) == (atOnce == null)) {
                throw new IllegalStateException(
                        "give the layer either experts(...) or localExperts(...)");
            }
            return new ExpertParallelMoE(this);
        }
    }
}
