package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.Projection;
import io.deepep.djl.Weights;
import java.io.IOException;

/**
 * DeepSeek's latent attention. Keys and values of all heads are made of one short vector per token,
 * which is all that is cached, with the part of the key that carries the position. Queries are
 * taken to the latent space instead of keys out of it, so that all heads look at the same key, and
 * the results are taken out of it at the end.
 */
final class LatentAttention implements Attention {
    private final int numHeads;
    private final int nopeSize;
    private final int ropeSize;
    private final int latentSize;
    private final Rope rope;

    /** Null where queries are made in one step, as in the Lite model. */
    private final Projection qDown;

    private final RmsNorm qNorm;
    private final Projection q;
    private final Projection kvDown;
    private final RmsNorm kvNorm;

    /** FLOAT32 [heads,nope,latent] and [heads,latent,value]. */
    private final NDArray toLatent;

    private final NDArray fromLatent;
    private final Projection o;
    private final Heads heads;
    private final KvCache cache;

    /** What values are made of: a view of the cache. */
    private final NDArray latents;

    LatentAttention(CheckpointConfig config, Weights weights, Rope rope, DecoderOptions options)
            throws IOException {
        this.rope = rope;
        int hidden = config.number("hidden_size");
        double epsilon = 1e-6;
        numHeads = config.number("num_attention_heads");
        nopeSize = config.number("qk_nope_head_dim");
        ropeSize = rotated(config);
        latentSize = config.number("kv_lora_rank");
        int valueSize = config.number("v_head_dim");
        int querySize = nopeSize + ropeSize;
        int rank = config.number("q_lora_rank", 0);
        boolean biased = config.flag("attention_bias", false);
        qDown = rank == 0 ? null : weights.projection("q_a_proj", rank, hidden, biased);
        qNorm = rank == 0 ? null : RmsNorm.load(weights, "q_a_layernorm", rank, epsilon);
        q =
                rank == 0
                        ? weights.projection("q_proj", (long) numHeads * querySize, hidden, false)
                        : weights.projection("q_b_proj", (long) numHeads * querySize, rank, false);
        kvDown = weights.projection("kv_a_proj_with_mqa", latentSize + ropeSize, hidden, biased);
        kvNorm = RmsNorm.load(weights, "kv_a_layernorm", latentSize, epsilon);
        NDArray up =
                weights.vector(
                                "kv_b_proj.weight",
                                (long) numHeads * (nopeSize + valueSize),
                                latentSize)
                        .reshape(numHeads, nopeSize + valueSize, latentSize);
        toLatent = up.get(":, :{}", nopeSize);
        fromLatent = up.get(":, {}:", nopeSize).transpose(0, 2, 1);
        o = weights.projection("o_proj", hidden, (long) numHeads * valueSize, biased);
        double scale = Rope.scoreFactor(config) / Math.sqrt(querySize);
        heads = new Heads(0, scale, null);
        cache = new KvCache(weights.manager(), options, 1, latentSize + ropeSize);
        latents = cache.all().get(new NDIndex("..., :{}", latentSize));
    }

    /** Rotated channels of a head. */
    static int rotated(CheckpointConfig config) {
        int rotated = config.number("qk_rope_head_dim");
        if (rotated % 2 != 0) {
            throw new IllegalArgumentException(
                    config + ": qk_rope_head_dim=" + rotated + " must be even: pairs are rotated");
        }
        return rotated;
    }

    @Override
    public NDArray apply(NDArray x, Pass pass) {
        long numTokens = pass.numTokens();
        Rope.Angles angles = pass.angles(rope);
        NDArray query =
                q.apply(qDown == null ? x : qNorm.apply(qDown.apply(x)))
                        .reshape(numTokens, numHeads, nopeSize + ropeSize);
        NDArray latentQuery =
                query.get(new NDIndex("..., :{}", nopeSize))
                        .transpose(1, 0, 2)
                        .matMul(toLatent)
                        .transpose(1, 0, 2);
        NDArray turnedQuery = rope.rotate(query.get(new NDIndex("..., {}:", nopeSize)), angles);
        NDArray down = kvDown.apply(x);
        NDArray latent = kvNorm.apply(down.get(new NDIndex(":, :{}", latentSize))).expandDims(1);
        NDArray turnedKey =
                rope.rotate(down.get(new NDIndex(":, {}:", latentSize)).expandDims(1), angles);
        NDArray key = NDArrays.concat(new NDList(latent, turnedKey), -1);
        cache.write(pass, key);
        NDArray mixed =
                heads.attend(
                                pass,
                                NDArrays.concat(new NDList(latentQuery, turnedQuery), -1),
                                key,
                                latent,
                                cache.all(),
                                latents)
                        .toType(DataType.FLOAT32, false)
                        .reshape(numTokens, numHeads, latentSize)
                        .transpose(1, 0, 2)
                        .matMul(fromLatent)
                        .transpose(1, 0, 2)
                        .reshape(numTokens, -1);
        return o.multiply(mixed);
    }
}
