package io.deepep.bench.report;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The largest of some numbers, the first of several.
 *
 * @param index which
 * @param share of the sum of all
 */
record Peak(int index, double share) {
    /** Empty where all are 0. */
    static Optional<Peak> of(long[] values) {
        long sum = Arrays.stream(values).sum();
        return IntStream.range(0, values.length)
                .boxed()
                .max(Comparator.comparingLong(i -> values[i]))
                .filter(i -> sum > 0)
                .map(i -> new Peak(i, (double) values[i] / sum));
    }
}
