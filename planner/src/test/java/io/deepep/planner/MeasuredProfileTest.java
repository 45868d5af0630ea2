package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.deepep.planner.MeasuredProfile.Measurement;
import java.util.List;
import org.junit.jupiter.api.Test;

class MeasuredProfileTest {
    private static final double BARE = 350e9;

    private static Measurement dispatch(double bytes, double micros) {
        return new Measurement(Mode.NORMAL, Op.DISPATCH, bytes, micros, BARE);
    }

    private static Profile.Costs costs(Measurement... measurements) {
        return new MeasuredProfile("run.json", List.of(measurements))
                .costs(Mode.NORMAL, Op.DISPATCH);
    }

    @Test
    void pointsOnALineGiveTheLine() {
        // 20 us and 250 GB/s
        Profile.Costs costs = costs(dispatch(0, 20), dispatch(50e6, 220), dispatch(100e6, 420));
        assertThat(costs.nvlinkMicros()).isCloseTo(20, within(1e-6));
        assertThat(costs.nvlinkBytesPerSecond()).isCloseTo(250e9, within(1e3));
        assertThat(costs.rdmaMicros())
                .isCloseTo(20 + 2 * KnownProfile.RDMA_TRIP_MICROS, within(1e-6));
        assertThat(costs.rdmaShare()).isEqualTo(KnownProfile.NORMAL_RDMA_SHARE);
    }

    /** Of small messages too: a fit of microseconds would only look at the large ones. */
    @Test
    void noOtherLineHasSmallerRelativeErrors() {
        List<Measurement> points =
                List.of(dispatch(1e6, 30), dispatch(20e6, 100), dispatch(400e6, 1900));
        Profile.Costs costs =
                new MeasuredProfile("run.json", points).costs(Mode.NORMAL, Op.DISPATCH);
        double micros = costs.nvlinkMicros();
        double rate = costs.nvlinkBytesPerSecond();
        double least = errors(points, micros, rate);
        for (double factor : new double[] {0.99, 1.01}) {
            assertThat(errors(points, micros * factor, rate)).isGreaterThan(least);
            assertThat(errors(points, micros, rate * factor)).isGreaterThan(least);
        }
    }

    private static double errors(List<Measurement> points, double micros, double rate) {
        LinkCost cost = new LinkCost(micros, rate);
        return points.stream()
                .mapToDouble(each -> Math.pow(cost.micros(each.bytes()) / each.micros() - 1, 2))
                .sum();
    }

    @Test
    void aSingleSizeLeavesTheRateToTheBareCopy() {
        Profile.Costs costs = costs(dispatch(35e6, 130));
        assertThat(costs.nvlinkBytesPerSecond()).isCloseTo(BARE, within(1.0));
        assertThat(costs.nvlinkMicros()).isCloseTo(30, within(1e-6));
    }

    @Test
    void nothingIsFasterThanTheBareCopy() {
        Profile.Costs costs = costs(dispatch(35e6, 130), dispatch(36e6, 130.1));
        assertThat(costs.nvlinkBytesPerSecond()).isCloseTo(BARE, within(1.0));
        assertThat(costs.nvlinkMicros()).isBetween(27.0, 30.0);
    }

    @Test
    void noTimeIsLessThanNothing() {
        assertThat(costs(dispatch(35e6, 90)).nvlinkMicros()).isZero();
    }

    @Test
    void whatWasNotMeasuredIsNotKnown() {
        MeasuredProfile profile = new MeasuredProfile("run.json", List.of(dispatch(1e6, 30)));
        assertThat(profile).hasToString("run.json");
        assertThatThrownBy(() -> profile.costs(Mode.LOW_LATENCY, Op.DISPATCH))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "profile run.json has no dispatch of low-latency mode; give measurements of it too,"
                                + " or plan only the other mode");
    }
}
