package io.deepep.testkit.routing;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** Arithmetic of the gates. */
final class SelectionProperties {
    /** Few different scores, so that many are equal; some are ruled out. */
    @Provide
    Arbitrary<List<Double>> scores() {
        return Arbitraries.of(Double.NEGATIVE_INFINITY, -1.5, 0.0, 0.25, 0.5, 2.0)
                .list()
                .ofMinSize(1)
                .ofMaxSize(20);
    }

    @Property
    void bestAreTheFirstOfAStableSort(
            @ForAll("scores") List<Double> scores, @ForAll @IntRange(max = 24) int count) {
        long[] expected =
                IntStream.range(0, scores.size())
                        .boxed()
                        .sorted(Comparator.comparingDouble((Integer i) -> -scores.get(i)))
                        .limit(count)
                        .mapToLong(Integer::longValue)
                        .toArray();
        double[] values = scores.stream().mapToDouble(Double::doubleValue).toArray();
        assertThat(Selection.best(values, count)).isEqualTo(expected);
    }
}
