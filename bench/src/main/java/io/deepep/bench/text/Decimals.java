package io.deepep.bench.text;

import java.util.Locale;

/** Numbers as reports write them. */
public final class Decimals {
    private Decimals() {}

    /** One number as {@code format} says, in no language; nothing where there is none. */
    @SuppressWarnings("AnnotateFormatMethod") // the annotation would be a dependency for this alone
    public static String of(String format, double value) {
        return Double.isNaN(value) ? "" : String.format(Locale.ROOT, format, value);
    }
}
