package io.deepep.djl.serving;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import com.google.gson.annotations.SerializedName;
import io.deepep.djl.decoder.Sampler;

/**
 * What a request asks for, in the words of DJL Serving's language models.
 *
 * @param numNewTokens {@code max_new_tokens}
 * @param temperature 0 for the likeliest token
 * @param topP {@code top_p}, used with a temperature
 * @param seed of the choice
 */
record Generation(
        @SerializedName("max_new_tokens") int numNewTokens,
        double temperature,
        @SerializedName("top_p") double topP,
        long seed) {
    static final Generation DEFAULT = new Generation(30, 0, 1, 1);

    /** INT64 [4], with the bits of what is a double. */
    NDArray toArray(NDManager manager) {
        return manager.create(
                new long[] {
                    numNewTokens,
                    Double.doubleToRawLongBits(temperature),
                    Double.doubleToRawLongBits(topP),
                    seed
                });
    }

    static Generation of(NDArray array) {
        long[] values = array.toLongArray();
        return new Generation(
                (int) values[0],
                Double.longBitsToDouble(values[1]),
                Double.longBitsToDouble(values[2]),
                values[3]);
    }

    Sampler samplerOfRank(int rank) {
        // Not of the next seed: its request would get the answers of this one's other ranks.
        return temperature == 0
                ? Sampler.greedy()
                : Sampler.topP(temperature, topP, seed + ((long) rank << Integer.SIZE));
    }
}
