package io.deepep.buffer.parity;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Tensor;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Holds what ranks got against what a vector file claims: bits, or distances where it has bounds.
 */
final class OutcomeCheck {
    private OutcomeCheck() {}

    static void check(ParityCase expected, List<Map<String, Tensor>> actual) {
        for (int rank = 0; rank < actual.size(); rank++) {
            Map<String, Tensor> claimed = expected.outputs().get(rank);
            assertThat(actual.get(rank).keySet())
                    .as("outputs of rank " + rank)
                    .isEqualTo(claimed.keySet());
            for (Map.Entry<String, Tensor> entry : claimed.entrySet()) {
                String name = entry.getKey();
                checkTensor(
                        "rank " + rank + ", " + name,
                        entry.getValue(),
                        actual.get(rank).get(name),
                        expected.bounds().get(rank).get(name));
            }
        }
    }

    private static void checkTensor(String what, Tensor expected, Tensor actual, Tensor bound) {
        assertThat(actual.dtype()).as("dtype of " + what).isEqualTo(expected.dtype());
        assertThat(actual.shape()).as("shape of " + what).isEqualTo(expected.shape());
        long[] index = new long[expected.rank()];
        for (long i = 0; i < expected.numElements(); i++) {
            toIndex(i, expected, index);
            boolean matches =
                    bound == null
                            ? expected.getLong(index) == actual.getLong(index)
                            : distance(expected, actual, index) <= bound.getFloat(index);
            if (!matches) {
                throw new AssertionError(
                        "%s%s: expected %s%s, saw %s"
                                .formatted(
                                        what,
                                        Arrays.toString(index),
                                        element(expected, index),
                                        bound == null ? "" : " ± " + bound.getFloat(index),
                                        element(actual, index)));
            }
        }
    }

    private static double distance(Tensor expected, Tensor actual, long[] index) {
        return Math.abs((double) expected.getFloat(index) - actual.getFloat(index));
    }

    private static String element(Tensor tensor, long[] index) {
        return "%s (0x%x)".formatted(tensor.getFloat(index), tensor.getLong(index));
    }

    private static void toIndex(long element, Tensor tensor, long[] index) {
        long rest = element;
        for (int dim = index.length - 1; dim >= 0; dim--) {
            index[dim] = rest % tensor.size(dim);
            rest /= tensor.size(dim);
        }
    }
}
