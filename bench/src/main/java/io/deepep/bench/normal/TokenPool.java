package io.deepep.bench.normal;

import io.deepep.Tensor;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.testkit.routing.Tokens;
import java.util.List;

/** Tokens, biases and expert outputs of every rank, made once and used by all cases. */
final class TokenPool {
    private final int hidden;
    private final long seed;
    private final List<Tokens> bf16;
    private final List<Tokens> fp8;
    private final List<Tensor> biases;
    private final Tensor[] outputs;

    TokenPool(Job job, RankTeam team, int maxTokens) {
        this.hidden = job.hidden();
        this.seed = job.variations().seed();
        this.bf16 = team.ask(rank -> Tokens.bf16(rank, maxTokens, hidden, seed));
        this.fp8 =
                team.ask(
                        rank -> job.allowsFp8() ? Tokens.fp8(rank, maxTokens, hidden, seed) : null);
        this.biases =
                team.ask(rank -> Rows.expertOutputs(maxTokens + 1, hidden, seed + 1000 + rank));
        this.outputs = new Tensor[job.numRanks()];
    }

    Tokens bf16(int rank) {
        return bf16.get(rank);
    }

    /** Null where the hidden size does not allow FP8. */
    Tokens fp8(int rank) {
        return fp8.get(rank);
    }

    /** One of two biases, BF16 [numTokens, H]. */
    Tensor bias(int rank, int which, int numTokens) {
        return biases.get(rank).slice(0, which, numTokens);
    }

    /**
     * What the experts of {@code rank} are said to compute, BF16 [rows, H]. Called on the thread of
     * that rank.
     */
    Tensor outputs(int rank, int rows) {
        if (outputs[rank] == null || outputs[rank].size(0) < rows) {
            outputs[rank] = Rows.expertOutputs(rows, hidden, seed + 77L * rank);
        }
        return outputs[rank].slice(0, 0, rows);
    }

    static Tokens first(Tokens all, int numTokens) {
        Tensor scales = all.scales() == null ? null : all.scales().slice(0, 0, numTokens);
        return new Tokens(all.x().slice(0, 0, numTokens), scales);
    }
}
