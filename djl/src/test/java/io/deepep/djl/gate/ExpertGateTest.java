package io.deepep.djl.gate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import io.deepep.djl.Moe;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Gates against a reference in plain Java, token by token. */
class ExpertGateTest {
    private static final int TOKENS = 40;
    private static final int EXPERTS = 16;
    private static final int TOPK = 4;

    private final NDManager manager = Moe.manager();
    private final NDArray x = Moe.random(manager, 5, 1, TOKENS, Moe.HIDDEN);

    @AfterEach
    void close() {
        manager.close();
    }

    /** What a gate chose for one token, and with which weights. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Choice(int[] experts, double[] weights) {}

    @Test
    void softmaxNormalised() {
        SoftmaxGate gate = new SoftmaxGate(TopkRule.of(EXPERTS, TOPK));
        check(gate, logits -> choose(softmax(logits), softmax(logits), true, 1));
    }

    @Test
    void softmaxAsItIs() {
        TopkRule rule = TopkRule.of(EXPERTS, TOPK).withNormalized(false);
        check(new SoftmaxGate(rule), logits -> choose(softmax(logits), softmax(logits), false, 1));
    }

    @Test
    void sigmoidWithBiasAndGroups() {
        checkDeepSeek(TopkRule.of(EXPERTS, TOPK).withScalingFactor(2.5f), 4, 2, 2.5);
    }

    @Test
    void sigmoidWithoutGroups() {
        checkDeepSeek(TopkRule.of(EXPERTS, TOPK), 1, 1, 1);
    }

    private void checkDeepSeek(TopkRule rule, int numGroups, int numTopkGroups, double factor) {
        DeepSeekV3Gate gate = new DeepSeekV3Gate(rule, numGroups, numTopkGroups);
        double[] bias = new double[EXPERTS];
        check(
                gate,
                logits -> {
                    double[] scores = sigmoid(logits);
                    readBias(gate, bias);
                    double[] within = withinBestGroups(scores, bias, numGroups, numTopkGroups);
                    return choose(within, scores, true, factor);
                });
    }

    /** The bias decides who is chosen, never by how much. */
    @Test
    void biasIsNotInTheWeights() {
        DeepSeekV3Gate gate =
                Moe.withWeights(new DeepSeekV3Gate(TopkRule.of(EXPERTS, 1), 1, 1), manager, 3);
        float[] toLast = new float[EXPERTS];
        toLast[EXPERTS - 1] = 10;
        gate.getDirectParameters().get("e_score_correction_bias").getArray().set(toLast);
        NDList routing = forward(gate, x);
        assertThat(routing.get(0).toLongArray()).containsOnly(EXPERTS - 1);
        for (float weight : routing.get(1).toFloatArray()) {
            assertThat(weight).isCloseTo(1, within(1e-5f));
        }
    }

    @Test
    void noTokensNoChoices() {
        SoftmaxGate gate = Moe.withWeights(new SoftmaxGate(TopkRule.of(EXPERTS, TOPK)), manager, 3);
        NDList routing = forward(gate, manager.create(new Shape(0, Moe.HIDDEN)));
        assertThat(routing.get(0).getShape()).isEqualTo(new Shape(0, TOPK));
        assertThat(routing.get(0).getDataType()).isEqualTo(DataType.INT64);
        assertThat(routing.get(1).getShape()).isEqualTo(new Shape(0, TOPK));
    }

    @Test
    void impossibleNumbersAreRefused() {
        assertThatThrownBy(() -> TopkRule.of(4, 5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("numTopk=5")
                .hasMessageContaining("numExperts=4");
        assertThatThrownBy(() -> TopkRule.of(4, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("numTopk=0");
        TopkRule rule = TopkRule.of(16, 4);
        for (int numGroups : new int[] {3, 0}) {
            assertThatThrownBy(() -> new DeepSeekV3Gate(rule, numGroups, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("numGroups=" + numGroups);
        }
        assertThatThrownBy(() -> new DeepSeekV3Gate(rule, 8, 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("numTopkGroups=1")
                .hasMessageContaining("numTopk=4");
    }

    private interface Reference {
        Choice of(double[] logits);
    }

    private void check(ExpertGate gate, Reference reference) {
        Moe.withWeights(gate, manager, 3);
        NDList routing = forward(gate, x);
        assertThat(routing.get(0).getDataType()).isEqualTo(DataType.INT64);
        long[] topkIdx = routing.get(0).toLongArray();
        float[] topkWeights = routing.get(1).toFloatArray();
        float[] weight = gate.getDirectParameters().get("weight").getArray().toFloatArray();
        float[] tokens = x.toFloatArray();
        for (int t = 0; t < TOKENS; t++) {
            Choice expected = reference.of(logits(tokens, t, weight));
            Map<Long, Float> weights = new HashMap<>();
            for (int k = t * TOPK; k < (t + 1) * TOPK; k++) {
                weights.put(topkIdx[k], topkWeights[k]);
            }
            for (int k = 0; k < TOPK; k++) {
                long expert = expected.experts[k];
                assertThat(weights).as("token %d", t).containsKey(expert);
                assertThat((double) weights.get(expert))
                        .isCloseTo(expected.weights[k], within(1e-5));
            }
        }
    }

    private NDList forward(ExpertGate gate, NDArray tokens) {
        return gate.forward(new ParameterStore(manager, false), new NDList(tokens), false);
    }

    private static void readBias(DeepSeekV3Gate gate, double[] bias) {
        float[] values =
                gate.getDirectParameters().get("e_score_correction_bias").getArray().toFloatArray();
        Arrays.setAll(bias, e -> values[e]);
    }

    private static double[] logits(float[] tokens, int token, float[] weight) {
        double[] logits = new double[EXPERTS];
        for (int e = 0; e < EXPERTS; e++) {
            for (int h = 0; h < Moe.HIDDEN; h++) {
                logits[e] += (double) tokens[token * Moe.HIDDEN + h] * weight[e * Moe.HIDDEN + h];
            }
        }
        return logits;
    }

    private static double[] softmax(double[] logits) {
        double sum = Arrays.stream(logits).map(Math::exp).sum();
        return Arrays.stream(logits).map(logit -> Math.exp(logit) / sum).toArray();
    }

    private static double[] sigmoid(double[] logits) {
        return Arrays.stream(logits).map(logit -> 1 / (1 + Math.exp(-logit))).toArray();
    }

    private static double[] withinBestGroups(
            double[] scores, double[] bias, int numGroups, int numTopkGroups) {
        int size = scores.length / numGroups;
        double[] choice = new double[scores.length];
        Arrays.setAll(choice, e -> scores[e] + bias[e]);
        double[] groupScores = new double[numGroups];
        Arrays.setAll(
                groupScores,
                g -> {
                    double[] sorted = Arrays.copyOfRange(choice, g * size, (g + 1) * size);
                    Arrays.sort(sorted);
                    return sorted[size - 1] + sorted[size - 2];
                });
        int[] best = largest(groupScores, numTopkGroups);
        Arrays.setAll(
                choice,
                e ->
                        IntStream.of(best).anyMatch(g -> g == e / size)
                                ? choice[e]
                                : Double.NEGATIVE_INFINITY);
        return choice;
    }

    private static Choice choose(
            double[] choice, double[] scores, boolean normalized, double factor) {
        int[] experts = largest(choice, TOPK);
        double[] weights = IntStream.of(experts).mapToDouble(e -> scores[e]).toArray();
        double sum = normalized ? Arrays.stream(weights).sum() : 1;
        Arrays.setAll(weights, k -> weights[k] / sum * factor);
        return new Choice(experts, weights);
    }

    private static int[] largest(double[] values, int count) {
        return IntStream.range(0, values.length)
                .boxed()
                .sorted(Comparator.comparingDouble((Integer i) -> -values[i]))
                .limit(count)
                .mapToInt(i -> i)
                .toArray();
    }
}
