package io.deepep.djl.gate;

/**
 * The number of experts that a gate selects, and how their weights are computed from scores.
 *
 * @param numExperts E: experts of all ranks
 * @param numTopk K: experts per token, 1 to E
 * @param normalized whether a token's K weights are divided by their sum
 * @param scalingFactor factor by which all weights are multiplied at the end
 */
public record TopkRule(int numExperts, int numTopk, boolean normalized, float scalingFactor) {
    /** Validates the numbers. */
    public TopkRule {
        if (numTopk < 1 || numTopk > numExperts) {
            throw new IllegalArgumentException(
                    "numTopk=" + numTopk + " is not in [1, numExperts=" + numExperts + "]");
        }
    }

    /** A rule with normalized weights that are not scaled. */
    public static TopkRule of(int numExperts, int numTopk) {
        return new TopkRule(numExperts, numTopk, true, 1);
    }

    /** A copy of this rule with weights that are normalized or not. */
    public TopkRule withNormalized(boolean on) {
        return new TopkRule(numExperts, numTopk, on, scalingFactor);
    }

    /** A copy of this rule with another scaling factor. */
    public TopkRule withScalingFactor(float factor) {
        return new TopkRule(numExperts, numTopk, normalized, factor);
    }
}
