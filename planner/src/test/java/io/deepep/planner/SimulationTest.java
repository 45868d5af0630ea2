package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.deepep.EpTopology;
import io.deepep.testkit.routing.Gate;
import java.util.List;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the simulation says of all tokens, from all of them and from a sample. */
final class SimulationTest {
    private static final EpTopology EIGHT_NODES = new EpTopology(0, 64, 8);
    private static final Shape SHAPE = new Shape(2048, 7168, 8, 256);

    static List<Gate> gates() {
        return List.of(new Gate.Uniform(), new Gate.Zipf(1), new Gate.GroupLimited(8, 4, false));
    }

    private static Simulation simulate(Gate gate, int sampledTokens) {
        return simulate(
                TokenSource.drawn(gate, SHAPE, EIGHT_NODES.numRanks(), 7, sampledTokens),
                EIGHT_NODES);
    }

    private static Simulation simulate(TokenSource source, EpTopology topology) {
        return Simulation.of(Mode.NORMAL, RowRule.ONCE_PER_RANK, source, topology);
    }

    @ParameterizedTest
    @MethodSource("gates")
    void aSampleSpeaksForAllTokens(Gate gate) {
        Simulation all = simulate(gate, SHAPE.numTokens());
        Simulation sample = simulate(gate, 128);
        assertThat(all.fraction()).isEqualTo(1);
        assertThat(sample.fraction()).isEqualTo(1.0 / 16);
        requireClose(
                LinkLoad.of(sample.dispatch().nvlinkOut, sample.dispatch().nvlinkIn, 1.0 / 16),
                LinkLoad.of(all.dispatch().nvlinkOut, all.dispatch().nvlinkIn, 1));
        requireClose(
                LinkLoad.of(sample.dispatch().rdmaOut, sample.dispatch().rdmaIn, 1.0 / 16),
                LinkLoad.of(all.dispatch().rdmaOut, all.dispatch().rdmaIn, 1));
        assertThat(sample.tokens()).isEqualTo(new LinkLoad(2048, 2048)).isEqualTo(all.tokens());
        assertThat(sample.meanReceived())
                .isCloseTo(all.meanReceived(), Percentage.withPercentage(1));
        assertThat((double) sample.mostReceived())
                .isCloseTo(all.mostReceived(), Percentage.withPercentage(3));
    }

    private static void requireClose(LinkLoad sample, LinkLoad all) {
        assertThat(sample.mean()).isCloseTo(all.mean(), Percentage.withPercentage(1));
        assertThat(sample.max()).isCloseTo(all.max(), Percentage.withPercentage(3));
    }

    @Test
    void ofAllTokensTheMaximumIsTheMaximum() {
        assertThat(LinkLoad.max(new long[] {3, 9, 6}, 1)).isCloseTo(9, within(1e-9));
        assertThat(LinkLoad.max(new long[] {5, 5, 5}, 0.25)).isEqualTo(20);
    }

    /**
     * The largest is 3 above the mean; a variance of 6 is what chance alone makes of a mean of 6.
     */
    @Test
    void whatChanceAddsToTheMaximumOfASampleIsTakenAway() {
        assertThat(LinkLoad.max(new long[] {3, 9, 6}, 0.5))
                .isCloseTo((6 + 3 * Math.sqrt(0.5)) / 0.5, within(1e-9));
    }

    @Test
    void uniformRoutingReachesAsManyRanksAsCombinatoricsSay() {
        EpTopology node = new EpTopology(0, 8, 8);
        Shape shape = new Shape(4096, 7168, 8, 256);
        Simulation simulation = simulate(TokenSource.drawn(new Gate.Uniform(), shape, 8, 0), node);
        // 8 * (1 - C(224, 8) / C(256, 8))
        double missed = 1;
        for (int k = 0; k < 8; k++) {
            missed *= (224.0 - k) / (256 - k);
        }
        assertThat(simulation.meanReceived() / 4096)
                .isCloseTo(8 * (1 - missed), Percentage.withPercentage(0.5));
    }

    @Test
    void aRankReceivesNoMoreThanAllTokens() {
        EpTopology node = new EpTopology(0, 4, 4);
        Shape everywhere = new Shape(15, 128, 4, 4);
        TokenSource source = TokenSource.drawn(new Gate.Uniform(), everywhere, 4, 0, 11);
        assertThat(simulate(source, node).mostReceived()).isEqualTo(4 * 15);
    }

    @Test
    void aSecondSimulationSeesTheSameTokens() {
        TokenSource source = TokenSource.drawn(new Gate.Uniform(), SHAPE, 64, 3, 16);
        assertThat(simulate(source, EIGHT_NODES).dispatch().nvlinkIn)
                .isEqualTo(simulate(source, EIGHT_NODES).dispatch().nvlinkIn);
    }

    @Test
    void manyTokensAreSampled() {
        TokenSource source =
                TokenSource.drawn(new Gate.Uniform(), new Shape(2048, 7168, 8, 2048), 2048, 0);
        assertThat(source.sampledTokens()).isBetween(16, 128);
        assertThat(source.maxTokens()).isEqualTo(2048);
    }
}
