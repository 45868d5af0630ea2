package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.testkit.routing.Gate;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the library would refuse is not planned, and is refused before anything is simulated. */
final class ModePlanTest {
    private static final EpTopology TWO_NODES = new EpTopology(0, 4, 2);

    private static TokenSource drawn(Shape shape, int numRanks) {
        return TokenSource.drawn(new Gate.Uniform(), shape, numRanks, 1);
    }

    private static ModePlan plan(Mode mode, Shape shape, DType dtype, TokenSource source) {
        Cluster cluster = new Cluster(TWO_NODES, KnownProfile.H200, 400, 1, 0);
        return ModePlan.of(mode, cluster, shape, dtype, RowRule.ONCE_PER_RANK, source);
    }

    @ParameterizedTest
    @CsvSource({
        "NORMAL, 16, 2880, 8, FP8_E4M3, hidden=2880 is not a multiple of 128",
        "NORMAL, 16, 100, 8, BF16, hidden=100",
        "NORMAL, 2147483647, 256, 8, BF16, 2147483647 tokens of 4 ranks",
        "LOW_LATENCY, 2147483647, 256, 8, BF16, maxTokens=2147483647",
        "NORMAL, 16, 256, 0, BF16, numExperts=0"
    })
    void refused(
            Mode mode, int numTokens, int hidden, int numExperts, DType dtype, String mentions) {
        Shape shape = new Shape(numTokens, hidden, 2, numExperts);
        assertThatThrownBy(() -> plan(mode, shape, dtype, drawn(shape, TWO_NODES.numRanks())))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(mentions);
    }

    @ParameterizedTest
    @CsvSource({
        "2, 16, 8, 2 ranks",
        "8, 16, 8, 8 ranks",
        "4, 17, 8, up to 17",
        "4, 0, 8, up to 0",
        "4, 16, 16, 16 experts"
    })
    void tokensOfAnotherGroupAreRefused(
            int numRanks, int numTokens, int numExperts, String mentions) {
        TokenSource other = drawn(new Shape(numTokens, 256, 2, numExperts), numRanks);
        Shape shape = new Shape(16, 256, 2, 8);
        assertThatThrownBy(() -> plan(Mode.NORMAL, shape, DType.BF16, other))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(mentions);
    }
}
