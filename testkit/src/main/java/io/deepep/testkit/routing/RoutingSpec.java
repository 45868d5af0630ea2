package io.deepep.testkit.routing;

import java.util.Objects;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * A recipe for a random {@link Routing}: the same recipe always gives the same routing.
 *
 * <pre>{@code
 * Routing routing = RoutingSpec.of(8, 128, 256, 8)
 *         .withGate(new Gate.GroupLimited(8, 4, true))
 *         .withMaskedShare(0.1)
 *         .generate();
 * }</pre>
 *
 * @param numRanks R
 * @param numTokens T of every rank, or the most of any rank with {@code varyingTokens}
 * @param numExperts E, a multiple of R
 * @param numTopk K
 * @param gate how experts are chosen
 * @param maskedShare chance that a selection is replaced by -1; its weight stays, so that one who
 *     reads it is caught
 * @param duplicateShare chance that a selection repeats the one before it, but for experts that the
 *     rank might then select more than {@code numTokens} times: low latency refuses these
 * @param varyingTokens whether ranks have different numbers of tokens
 * @param numIdleRanks how many ranks, the last ones, have no tokens at all
 * @param seed of all randomness
 */
public record RoutingSpec(
        int numRanks,
        int numTokens,
        int numExperts,
        int numTopk,
        Gate gate,
        double maskedShare,
        double duplicateShare,
        boolean varyingTokens,
        int numIdleRanks,
        long seed) {
    /** Validates the numbers. */
    public RoutingSpec {
        Objects.requireNonNull(gate, "gate");
        if (numRanks < 1 || numTokens < 0 || numTopk < 1) {
            throw new IllegalArgumentException(
                    "numRanks=%s, numTokens=%s, numTopk=%s must be at least 1, 0 and 1"
                            .formatted(numRanks, numTokens, numTopk));
        }
        if (numExperts < numRanks || numExperts % numRanks != 0) {
            throw new IllegalArgumentException(
                    "numExperts=" + numExperts + " is not a multiple of numRanks=" + numRanks);
        }
        String objection = gate.objection(numExperts, numTopk);
        if (objection != null) {
            throw new IllegalArgumentException(objection);
        }
        requireShare("maskedShare", maskedShare);
        requireShare("duplicateShare", duplicateShare);
        if (numIdleRanks < 0 || numIdleRanks > numRanks) {
            throw new IllegalArgumentException(
                    "numIdleRanks=" + numIdleRanks + " is not in [0, numRanks=" + numRanks + "]");
        }
    }

    private static void requireShare(String name, double share) {
        if (!(share >= 0 && share <= 1)) {
            throw new IllegalArgumentException(name + "=" + share + " is not in [0, 1]");
        }
    }

    /** Uniform distinct experts, as many tokens on every rank, nothing masked, seed 0. */
    public static RoutingSpec of(int numRanks, int numTokens, int numExperts, int numTopk) {
        return new RoutingSpec(
                numRanks, numTokens, numExperts, numTopk, new Gate.Uniform(), 0, 0, false, 0, 0);
    }

    /** With another gate. */
    public RoutingSpec withGate(Gate other) {
        return with(
                numTokens, other, maskedShare, duplicateShare, varyingTokens, numIdleRanks, seed);
    }

    /** With another number of tokens per rank. */
    public RoutingSpec withNumTokens(int number) {
        return with(number, gate, maskedShare, duplicateShare, varyingTokens, numIdleRanks, seed);
    }

    /** With a chance that a selection becomes -1. */
    public RoutingSpec withMaskedShare(double share) {
        return with(numTokens, gate, share, duplicateShare, varyingTokens, numIdleRanks, seed);
    }

    /** With a chance that a selection repeats the one before. */
    public RoutingSpec withDuplicateShare(double share) {
        return with(numTokens, gate, maskedShare, share, varyingTokens, numIdleRanks, seed);
    }

    /** With numbers of tokens drawn from 0 to {@code numTokens} for each rank. */
    public RoutingSpec withVaryingTokens(boolean on) {
        return with(numTokens, gate, maskedShare, duplicateShare, on, numIdleRanks, seed);
    }

    /** With the last {@code number} ranks having no tokens. */
    public RoutingSpec withIdleRanks(int number) {
        return with(numTokens, gate, maskedShare, duplicateShare, varyingTokens, number, seed);
    }

    /** Masked and repeated selections, different numbers of tokens, one rank without any. */
    public RoutingSpec ragged() {
        return with(numTokens, gate, 0.3, 0.3, true, numRanks > 1 ? 1 : 0, seed);
    }

    /** With another seed. */
    public RoutingSpec withSeed(long other) {
        return with(
                numTokens, gate, maskedShare, duplicateShare, varyingTokens, numIdleRanks, other);
    }

    private RoutingSpec with(
            int number,
            Gate other,
            double masked,
            double duplicate,
            boolean varying,
            int idle,
            long another) {
        return new RoutingSpec(
                numRanks,
                number,
                numExperts,
                numTopk,
                other,
                masked,
                duplicate,
                varying,
                idle,
                another);
    }

    /** The routing of this recipe. */
    public Routing generate() {
        SplittableRandom seeds = new SplittableRandom(seed);
        long[][][] idx = new long[numRanks][][];
        float[][][] weights = new float[numRanks][][];
        for (int rank = 0; rank < numRanks; rank++) {
            // One generator per rank: its tokens do not depend on how many the others have.
            SplittableRandom random = seeds.split();
            int tokens = varyingTokens ? random.nextInt(numTokens + 1) : numTokens;
            if (rank >= numRanks - numIdleRanks) {
                tokens = 0;
            }
            idx[rank] = new long[tokens][];
            weights[rank] = new float[tokens][];
            int[] times = new int[numExperts];
            for (int token = 0; token < tokens; token++) {
                // Tokens that follow may each select any expert once.
                int mostTimes = numTokens - (tokens - 1 - token);
                idx[rank][token] = experts(random, token, times, mostTimes);
                weights[rank][token] = normalisedWeights(random);
            }
        }
        return Routing.of(numExperts, numTopk, idx, weights);
    }

    /**
     * What a token selects.
     *
     * @param times that the rank has selected each expert; these selections are added
     * @param mostTimes it may do so with this token, if by a repetition
     */
    private long[] experts(RandomGenerator random, int token, int[] times, int mostTimes) {
        long[] chosen = gate.select(random, token, numExperts, numTopk);
        for (int k = 0; k < numTopk; k++) {
            boolean repeats = k > 0 && random.nextDouble() < duplicateShare;
            if (repeats && (chosen[k - 1] < 0 || times[(int) chosen[k - 1]] < mostTimes)) {
                chosen[k] = chosen[k - 1];
            }
            if (random.nextDouble() < maskedShare) {
                chosen[k] = -1;
            }
            if (chosen[k] >= 0) {
                times[(int) chosen[k]]++;
            }
        }
        return chosen;
    }

    /** Positive weights that sum to 1 up to rounding. */
    private float[] normalisedWeights(RandomGenerator random) {
        double[] raw = new double[numTopk];
        double sum = 0;
        for (int k = 0; k < numTopk; k++) {
            raw[k] = 0.05 + random.nextDouble();
            sum += raw[k];
        }
        float[] weights = new float[numTopk];
        for (int k = 0; k < numTopk; k++) {
            weights[k] = (float) (raw[k] / sum);
        }
        return weights;
    }
}
