package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.Moe;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SamplerTest {
    private final NDManager manager = Moe.manager();

    @AfterEach
    void close() {
        manager.close();
    }

    /** As likely as given, in every row. */
    private NDArray logits(int numRows, double... probabilities) {
        NDArray row = manager.create(probabilities).log().toType(DataType.FLOAT32, false);
        return row.broadcast(new Shape(numRows, probabilities.length));
    }

    private static List<Long> draws(Sampler sampler, NDArray logits, int count) {
        List<Long> drawn = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            drawn.add(sampler.next(logits).getLong(0));
        }
        return drawn;
    }

    /** So that an answer does not depend on the other prompts of a request. */
    @Test
    void rowsDoNotDependOnOthers() {
        Sampler alone = Sampler.topP(1, 1, 5);
        Sampler beside = Sampler.topP(1, 1, 5);
        assertThat(draws(beside, logits(3, .25, .25, .25, .25), 50))
                .isEqualTo(draws(alone, logits(1, .25, .25, .25, .25), 50));
        long[] last = beside.next(logits(64, .25, .25, .25, .25)).toLongArray();
        assertThat(last).contains(0, 1, 2, 3);
    }

    /** Of 100 seeds, each token is the first one of some 25. */
    @Test
    void seedsDiffer() {
        NDArray logits = logits(1, .25, .25, .25, .25);
        long[] first =
                LongStream.range(0, 100)
                        .map(seed -> Sampler.topP(1, 1, seed).next(logits).getLong(0))
                        .toArray();
        for (int token = 0; token < 4; token++) {
            int own = token;
            assertThat(LongStream.of(first).filter(each -> each == own).count())
                    .isBetween(10L, 40L);
        }
    }

    /** Tokens 2 and 0 reach 0.7 together. */
    @Test
    void theLikeliestAreKept() {
        List<Long> drawn = draws(Sampler.topP(1, .7, 1), logits(1, .3, .2, .45, .05), 500);
        assertThat(drawn).containsOnly(0L, 2L);
        assertThat(drawn.stream().filter(each -> each == 2).count()).isBetween(250L, 350L);
    }

    /** Every row with its own numbers, as in requests of several clients that run together. */
    @ParameterizedTest
    @CsvSource({".9, .99, .05", "1, 1, 1"})
    void whoSharesCallsChoosesAsAlone(double first, double second, double third) {
        NDArray logits = manager.randomNormal(new Shape(40, 5, 1000)).muli(3);
        List<TopP> samplers = samplers(first, second, third);
        int[] numRows = {1, 3, 1};
        List<TopP.Row> rows = new ArrayList<>();
        for (int i = 0; i < numRows.length; i++) {
            rows.addAll(samplers.get(i).rows(numRows[i]));
        }
        Sampler together = TopP.together(rows, 40, manager);
        List<TopP> alone = samplers(first, second, third);
        for (int step = 0; step < 40; step++) {
            NDArray ofStep = logits.get(step);
            List<Long> expected = new ArrayList<>();
            int begin = 0;
            for (int i = 0; i < numRows.length; i++) {
                NDArray own = ofStep.get("{}:{}", begin, begin + numRows[i]);
                for (long token : alone.get(i).next(own).toLongArray()) {
                    expected.add(token);
                }
                begin += numRows[i];
            }
            assertThat(together.next(ofStep).toLongArray())
                    .containsExactly(expected.stream().mapToLong(each -> each).toArray());
        }
    }

    private static List<TopP> samplers(double first, double second, double third) {
        return List.of(new TopP(1, first, 7), new TopP(.3, second, 7), new TopP(2, third, 8));
    }

    /** Of 4000 numbers, each token gets its part, within four standard deviations. */
    @ParameterizedTest
    @ValueSource(doubles = {1, 1 - 1e-9})
    void tokensAreAsLikelyAsGiven(double p) {
        double[] likely = {.1, .4, 0, .2, .3};
        List<Long> drawn = draws(Sampler.topP(1, p, 3), logits(1, likely), 4000);
        for (int token = 0; token < likely.length; token++) {
            long own = token;
            double spread = Math.sqrt(4000 * likely[token] * (1 - likely[token]));
            assertThat((double) drawn.stream().filter(each -> each == own).count())
                    .isCloseTo(4000 * likely[token], within(4 * spread));
        }
    }

    /** An index beyond the row would end a GPU's context, and all ranks of the process with it. */
    @Test
    void noNumbersGiveATokenOfTheVocabulary() {
        for (float value :
                new float[] {Float.NaN, Float.NEGATIVE_INFINITY, Float.POSITIVE_INFINITY}) {
            NDArray row = manager.full(new Shape(1, 4), value, DataType.FLOAT32);
            assertThat(draws(Sampler.topP(1, .5, 1), row, 10))
                    .allMatch(token -> token >= 0 && token < 4);
            assertThat(draws(Sampler.topP(1, 1, 1), row, 10))
                    .allMatch(token -> token >= 0 && token < 4);
        }
    }

    @Test
    void temperaturesFlattenOrSharpen() {
        NDArray logits = logits(1, .1, .2, .7);
        assertThat(draws(Sampler.topP(1e-3, 1, 1), logits, 50)).containsOnly(2L);
        for (double high : new double[] {1e30, 1e300, Double.POSITIVE_INFINITY}) {
            List<Long> drawn = draws(Sampler.topP(high, 1, 1), logits, 300);
            assertThat(drawn.stream().filter(each -> each == 0).count()).isBetween(70L, 130L);
        }
    }

    @Test
    void rowsHaveTheirOwnTokens() {
        NDArray rows = manager.create(new float[] {0, 90, 0, 0, 0, 90}, new Shape(2, 3));
        assertThat(Sampler.topP(1, 1, 1).next(rows).toLongArray()).containsExactly(1, 2);
    }

    /** The probabilities of a row, rounded, may be less than 1 together. */
    @Test
    void allOfARowIsNoMore() {
        Sampler sampler = Sampler.topP(1, 1, 1);
        for (int i = 0; i < 20; i++) {
            NDArray row = manager.randomUniform(0, 1, new Shape(1, 1000));
            assertThat(sampler.next(row).getLong(0)).isBetween(0L, 999L);
        }
    }

    @ParameterizedTest
    @CsvSource({"0, 1", "NaN, 1", "1, NaN"})
    void numbersThatChooseNothingAreRefused(double temperature, double p) {
        assertThatThrownBy(() -> Sampler.topP(temperature, p, 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("temperature=" + temperature)
                .hasMessageContaining("p=" + p);
    }
}
