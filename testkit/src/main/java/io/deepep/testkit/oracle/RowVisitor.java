package io.deepep.testkit.oracle;

import io.deepep.Tensor;

/** Takes the row of a selection. */
@FunctionalInterface
interface RowVisitor {
    /** Takes row {@code row} of {@code rows}, BF16 [N,H]. */
    void add(Tensor rows, long row, double weight);
}
