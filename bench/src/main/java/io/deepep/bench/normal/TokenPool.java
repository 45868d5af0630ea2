package io.deepep.bench.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchResult;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.bench.run.RankMemory;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.routing.Tokens;
import java.lang.foreign.Arena;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Tokens, biases and expert outputs of every rank, made once and used by all cases. */
final class TokenPool implements AutoCloseable {
    /**
     * The same rows twice: for the oracle on the host, and where the buffer of their rank works,
     * null if it is one of another process. One tensor on the host backend.
     */
    record Placed(Tokens host, Tokens device) {
        Placed slice(long from, long rows) {
            return new Placed(
                    slice(host, from, rows), device == null ? null : slice(device, from, rows));
        }

        private static Tokens slice(Tokens all, long from, long rows) {
            Tensor scales = all.scales() == null ? null : all.scales().slice(0, from, rows);
            return new Tokens(all.x().slice(0, from, rows), scales);
        }
    }

    private final Session session;
    private final int hidden;
    private final long seed;
    private final Map<DType, List<Placed>> tokens = new EnumMap<>(DType.class);
    private final List<Placed> biases;
    private final Arena arena = Arena.ofShared();
    private final List<Tensor> differentOutputs;
    private final Placed[] outputs;
    private final Tensor[] plain;

    TokenPool(Session session, int maxTokens) {
        this.session = session;
        this.hidden = session.job().hidden();
        this.seed = session.job().variations().seed();
        tokens.put(DType.BF16, placed(rank -> Tokens.bf16(rank, maxTokens, hidden, seed)));
        if (session.job().allowsFp8()) {
            tokens.put(DType.FP8_E4M3, placed(rank -> Tokens.fp8(rank, maxTokens, hidden, seed)));
        }
        this.biases =
                session.ask(
                        rank ->
                                place(
                                        rank,
                                        Rows.expertOutputs(
                                                maxTokens + 1, hidden, seed + 1000 + rank)));
        this.differentOutputs =
                IntStream.range(0, session.job().numRanks())
                        .mapToObj(rank -> Rows.differentOutputs(hidden, outputSeed(rank)))
                        .toList();
        this.outputs = new Placed[session.job().numRanks()];
        this.plain = new Tensor[session.job().numRanks()];
    }

    /** The tokens of all ranks: those of other processes for the oracle alone. */
    private List<Placed> placed(IntFunction<Tokens> make) {
        List<Placed> all = session.ask(rank -> place(rank, make.apply(rank)));
        for (int rank = 0; rank < all.size(); rank++) {
            if (all.get(rank) == null) {
                all.set(rank, new Placed(make.apply(rank), null));
            }
        }
        return all;
    }

    private Placed place(int rank, Tensor host) {
        return place(rank, new Tokens(host, null));
    }

    private Placed place(int rank, Tokens host) {
        Tensor x = session.memory(rank).upload(host.x());
        Tensor scales = host.scales() == null ? null : session.memory(rank).upload(host.scales());
        return new Placed(host, new Tokens(x, scales));
    }

    /** Tokens of all ranks; no FP8 where the hidden size does not allow it. */
    Map<DType, List<Placed>> tokens() {
        return tokens;
    }

    /** One of two biases, BF16 [numTokens, H]. */
    Placed bias(int rank, int which, int numTokens) {
        return biases.get(rank).slice(which, numTokens);
    }

    /**
     * What the experts of {@code rank} are said to compute, BF16 [rows, H]. Called on the thread of
     * that rank.
     */
    private Placed outputs(int rank, int rows) {
        if (outputs[rank] == null || outputs[rank].host().x().size(0) < rows) {
            Tensor host = Rows.expertOutputs(arena, rows, hidden, outputSeed(rank));
            outputs[rank] = place(rank, host);
        }
        return outputs[rank].slice(0, rows);
    }

    private long outputSeed(int rank) {
        return seed + 77L * rank;
    }

    /**
     * {@link #outputs} of all ranks for the oracle, those of other processes too: each without the
     * rows that repeat.
     */
    List<Tensor> differentOutputs() {
        return differentOutputs;
    }

    /** {@link #outputs} in plain device memory. */
    private Tensor plainOutputs(int rank, int rows) {
        Tensor host = outputs(rank, rows).host().x();
        if (plain[rank] == null || plain[rank].size(0) < rows) {
            plain[rank] = session.memory(rank).uploadPlain(host);
        }
        return plain[rank].slice(0, 0, rows);
    }

    /** A combine of {@link #outputs} for the rows of a dispatch, from where {@code source} says. */
    CombinePlan.Builder combine(
            int rank, CombineSource source, CombineFormat format, DispatchResult received) {
        int rows = received.numRecvTokens();
        CombinePlan.Builder plan =
                switch (source) {
                    case ELSEWHERE ->
                            CombinePlan.builder(
                                    outputs(rank, rows).device().x(), received.handle());
                    case PLAIN_MEMORY ->
                            CombinePlan.builder(plainOutputs(rank, rows), received.handle());
                    case BUFFER -> inBuffer(rank, format, received);
                };
        return plan.format(format);
    }

    private CombinePlan.Builder inBuffer(int rank, CombineFormat format, DispatchResult received) {
        RankMemory memory = session.memory(rank);
        int rows = received.numRecvTokens();
        Placed outputs = outputs(rank, rows);
        if (format == CombineFormat.BF16) {
            Tensor target = session.buffer(rank).getCombineBuffer(received.handle());
            memory.copyRows(outputs.device().x(), target, rows);
            return CombinePlan.builder(target, received.handle());
        }
        ScaledRows target = session.buffer(rank).getFp8CombineBuffer(received.handle());
        try (Arena brief = Arena.ofShared()) {
            ScaledRows host = Rows.fp8(brief, outputs.host().x());
            memory.copyRows(memory.upload(host.elements()), target.elements(), rows);
            memory.copyRows(memory.upload(host.scales()), target.scales(), rows);
        }
        return CombinePlan.builder(target.elements(), received.handle()).scales(target.scales());
    }

    /** Frees the expert outputs; the rest belongs to the garbage collector. */
    @Override
    public void close() {
        arena.close();
    }
}
