package io.deepep.normal;

import io.deepep.DType;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.util.Locale;

/** What travels in an operation, for observers. */
public final class NormalRows {
    private NormalRows() {}

    /** Rows of {@code hidden} elements, with the scales of FP8. */
    public static void describe(RecordedFacts facts, DType dtype, int hidden) {
        facts.rows(dtype.name().toLowerCase(Locale.ROOT), new RowFormat(dtype, hidden).dataBytes());
    }
}
