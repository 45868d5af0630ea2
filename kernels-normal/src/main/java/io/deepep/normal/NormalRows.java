package io.deepep.normal;

import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.util.Locale;

/** What travels in an operation, for observers. */
public final class NormalRows {
    private NormalRows() {}

    /** Rows of that format, without their padding. */
    public static void describe(RecordedFacts facts, RowFormat row) {
        facts.rows(row.dtype().name().toLowerCase(Locale.ROOT), row.dataBytes());
    }
}
