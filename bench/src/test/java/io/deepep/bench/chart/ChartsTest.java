package io.deepep.bench.chart;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class ChartsTest {
    /** Of large groups, files would have tens of megabytes. */
    @Test
    void whatIsTooSmallToBeSeenIsDrawnTogether() {
        double[][] values = new double[512][512];
        values[511][40] = 7;
        String map = Charts.heatMap("title", "from", "to", values);
        assertThat(map)
                .hasSizeLessThan(1_000_000)
                .contains("each cell: the largest of 8 x 8")
                .contains("from 504 to 511, to 40 to 47: 7<");
        assertThat(Charts.heatMap("title", "from", "to", new double[72][72]))
                .contains("from 71, to 71: 0<")
                .doesNotContain("each cell");
        long[] loads = new long[65_536];
        loads[65_535] = 9;
        assertThat(Charts.loads("title", "expert", "tokens", loads))
                .hasSizeLessThan(1_000_000)
                .contains("each bar: the most of 64 neighbours; dashed: the mean, 0")
                .contains("expert 65472 to 65535: 9 tokens<", "expert 65535: 9<");
        assertThat(Charts.loads("title", "expert", "tokens", new long[256]))
                .contains("expert 255: 0 tokens<")
                .doesNotContain("each bar");
    }

    /** They would have no end of marks. */
    @Test
    void logarithmicAxesShowPositiveNumbersAlone() {
        Charts.Line line = new Charts.Line();
        line.add(8, 20);
        double[] others = {0, -1, Double.NaN, Double.POSITIVE_INFINITY};
        for (double other : others) {
            line.add(other, 20);
            line.add(8, other);
        }
        assertThat(line.xs()).containsExactly(8.0);
        assertThat(line.ys()).containsExactly(20.0);
        assertThat(Charts.lines("title", "x", "y", Map.of("line", line))).contains("line");
    }
}
