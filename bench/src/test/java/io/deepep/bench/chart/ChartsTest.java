package io.deepep.bench.chart;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class ChartsTest {
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
