package io.deepep.djl.gate;

/**
 * How many experts a gate selects, and what becomes of their scores.
 *
 * @param numExperts E, experts of all ranks
 * @param numTopk K, experts per token, at most E
 * @param normalized whether a token's K weights are divided by their sum
 * @param scalingFactor multiplies all weights in the end
 */
public record TopkRule(int numExperts, int numTopk, boolean normalized, float scalingFactor) {
    /** Validates the numbers. */
    public TopkRule {
        if (numTopk < 1 || numTopk > numExperts) {
            throw new IllegalArgumentException(
                    "numTopk=" + numTopk + " is not in [1, numExperts=" + numExperts + "]");
        }
    }

    /** Normalised weights, not scaled. */
    public static TopkRule of(int numExperts, int numTopk) {
        return new TopkRule(numExperts, numTopk, true, 1);
    }

    /** The same with weights that are normalised or not. */
    public TopkRule withNormalized(boolean on) {
        return new TopkRule(numExperts, numTopk, on, scalingFactor);
    }

    /** The same with another factor. */
    public TopkRule withScalingFactor(float factor) {
        return new TopkRule(numExperts, numTopk, normalized, factor);
    }
}
