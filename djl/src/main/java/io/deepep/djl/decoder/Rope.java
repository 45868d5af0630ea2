package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.script.Operators;
import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * Rotary position embedding, as it is or stretched by YaRN: tables of cosines and sines by
 * position.
 */
final class Rope {
    private static final double DEFAULT_THETA = 10_000;
    private static final double DEFAULT_FAST = 32;

    private final NDArray cos;
    private final NDArray sin;

    /** INT64 [C]: the channel that each is turned with. */
    private final NDArray partners;

    /**
     * Of the tokens of one pass: FLOAT32 [T,1,C]. The sines of the first of each pair are negated;
     * channels that stay have a cosine of 1.
     */
    record Angles(NDArray cos, NDArray sin) {}

    /**
     * Makes the tables.
     *
     * @param channels C, of a head
     * @param rotated the first channels, which are rotated; and one more if they are odd
     * @param interleaved whether neighbours make a pair, or the halves of the channels do
     */
    Rope(
            CheckpointConfig config,
            int channels,
            int rotated,
            boolean interleaved,
            int maxLength,
            NDManager manager) {
        if ((long) maxLength * channels > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "maxLength=%s must be at most %s, as a head has %s channels"
                            .formatted(maxLength, Integer.MAX_VALUE / channels, channels));
        }
        CheckpointConfig parameters = parameters(config);
        double[] frequencies = frequencies(config, parameters, rotated);
        double factor = isYarn(parameters) ? attentionFactor(config, parameters) : 1;
        float[] cosines = new float[maxLength * channels];
        float[] sines = new float[cosines.length];
        Arrays.fill(cosines, 1);
        long[] partnerOf = LongStream.range(0, channels).toArray();
        int pairs = frequencies.length;
        for (int pair = 0; pair < pairs; pair++) {
            int first = interleaved ? 2 * pair : pair;
            int second = interleaved ? first + 1 : first + pairs;
            partnerOf[first] = second;
            partnerOf[second] = first;
            for (int position = 0; position < maxLength; position++) {
                double angle = position * frequencies[pair];
                int row = position * channels;
                cosines[row + first] = (float) (Math.cos(angle) * factor);
                cosines[row + second] = cosines[row + first];
                sines[row + second] = (float) (Math.sin(angle) * factor);
                sines[row + first] = -sines[row + second];
            }
        }
        Shape shape = new Shape(maxLength, 1, channels);
        cos = manager.create(cosines, shape);
        sin = manager.create(sines, shape);
        partners = manager.create(partnerOf);
    }

    /**
     * transformers 5 writes rope_parameters; what came before has rope_scaling, which goes first.
     */
    private static CheckpointConfig parameters(CheckpointConfig config) {
        return config.part(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
    }

    private static boolean isYarn(CheckpointConfig parameters) {
        String type = parameters.text("rope_type", parameters.text("type", "default"));
        if (!type.equals("default") && !type.equals("yarn")) {
            throw new IllegalArgumentException(
                    parameters + ": rope_type=" + type + " is neither default nor yarn");
        }
        return type.equals("yarn");
    }

    private static double[] frequencies(
            CheckpointConfig config, CheckpointConfig parameters, int dimensions) {
        double theta =
                positive(parameters, "rope_theta", config.decimal("rope_theta", DEFAULT_THETA));
        double[] frequencies = new double[Math.ceilDiv(dimensions, 2)];
        for (int i = 0; i < frequencies.length; i++) {
            frequencies[i] = Math.pow(theta, -2.0 * i / dimensions);
        }
        if (isYarn(parameters)) {
            stretch(frequencies, dimensions, theta, config, parameters);
        }
        return frequencies;
    }

    /** A number of which there are logarithms, or that divides. */
    private static double positive(CheckpointConfig parameters, String key, double otherwise) {
        double number = parameters.decimal(key, otherwise);
        if (number <= 0) {
            throw new IllegalArgumentException(
                    "%s: %s=%s must be above 0".formatted(parameters, key, number));
        }
        return number;
    }

    /**
     * YaRN: slow rotations, which the model has not seen whole, are slowed down by the factor; fast
     * ones stay; between them it goes over linearly.
     */
    private static void stretch(
            double[] frequencies,
            int dimensions,
            double theta,
            CheckpointConfig config,
            CheckpointConfig parameters) {
        int before = lengthBefore(config, parameters);
        double low =
                channel(positive(parameters, "beta_fast", DEFAULT_FAST), dimensions, theta, before);
        double high = channel(positive(parameters, "beta_slow", 1), dimensions, theta, before);
        if (parameters.flag("truncate", true)) {
            low = Math.floor(low);
            high = Math.ceil(high);
        }
        low = Math.max(low, 0);
        high = Math.min(high, dimensions - 1);
        double width = high == low ? 0.001 : high - low;
        double factor = factor(config, parameters);
        for (int i = 0; i < frequencies.length; i++) {
            double slow = Math.clamp((i - low) / width, 0, 1);
            frequencies[i] *= 1 - slow + slow / factor;
        }
    }

    private static int lengthBefore(CheckpointConfig config, CheckpointConfig parameters) {
        String key = "original_max_position_embeddings";
        return parameters.has(key)
                ? parameters.number(key)
                : config.number("max_position_embeddings");
    }

    /** By how much YaRN stretches; what it does not say, the lengths do. */
    private static double factor(CheckpointConfig config, CheckpointConfig parameters) {
        return parameters.has("factor")
                ? positive(parameters, "factor", 1)
                : (double) config.number("max_position_embeddings")
                        / lengthBefore(config, parameters);
    }

    /** The channel that rotates {@code rotations} times over the length before. */
    private static double channel(double rotations, int dimensions, double theta, int length) {
        return dimensions * Math.log(length / (rotations * 2 * Math.PI)) / (2 * Math.log(theta));
    }

    private static double attentionFactor(CheckpointConfig config, CheckpointConfig parameters) {
        double factor = factor(config, parameters);
        double all = parameters.decimal("mscale_all_dim", 0);
        double own = parameters.decimal("mscale", 0);
        double otherwise =
                own != 0 && all != 0
                        ? magnitude(factor, own) / magnitude(factor, all)
                        : magnitude(factor, 1);
        return parameters.decimal("attention_factor", otherwise);
    }

    private static double magnitude(double factor, double scale) {
        return factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1;
    }

    /** What DeepSeek multiplies its scores by besides: the square of YaRN's magnitude. */
    static double scoreFactor(CheckpointConfig config) {
        CheckpointConfig parameters = parameters(config);
        double all = parameters.decimal("mscale_all_dim", 0);
        if (!isYarn(parameters) || all == 0) {
            return 1;
        }
        double magnitude = magnitude(factor(config, parameters), all);
        return magnitude * magnitude;
    }

    /** The angles of tokens at positions INT64 [T]. */
    Angles at(NDManager scope, NDArray positions) {
        NDIndex rows = new NDIndex("{}", positions);
        return new Angles(cos.get(scope, rows), sin.get(scope, rows));
    }

    /** Rotates x [T,heads,C]. */
    NDArray rotate(NDArray x, Angles angles) {
        return Operators.rotate(x, angles.cos, angles.sin, partners);
    }

    /** {@link Operators#heads} with these angles. */
    NDList heads(
            NDArray qkv, int numKvHeads, int size, NDArray norm, double epsilon, Angles angles) {
        return Operators.heads(
                qkv, numKvHeads, size, norm, epsilon, angles.cos, angles.sin, partners);
    }
}
