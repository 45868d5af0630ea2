package io.deepep.bench.report;

import io.deepep.bench.text.Decimals;

/**
 * A number as people read it, with its unit, and as tables sort it.
 *
 * @param value in the base unit; NaN where there is none
 * @param text for people
 */
record Quantity(double value, String text) {
    private static final String[] TIMES = {"µs", "ms", "s"};
    private static final String[] BYTES = {"B", "kB", "MB", "GB", "TB"};
    private static final double STEP = 1000;

    static Quantity micros(double micros) {
        return of(micros, TIMES, "");
    }

    static Quantity bytes(long bytes) {
        return of((double) bytes, BYTES, "");
    }

    static Quantity bytesPerSecond(double rate) {
        return of(rate, BYTES, "/s");
    }

    /** Of a share of 1. */
    static Quantity percent(double share) {
        return new Quantity(share, Double.isNaN(share) ? "" : Decimals.of("%.0f %%", 100 * share));
    }

    /** In the largest unit of which there is at least one, with three digits. */
    private static Quantity of(double value, String[] units, String per) {
        if (Double.isNaN(value)) {
            return new Quantity(value, "");
        }
        int unit = 0;
        double shown = value;
        // What would be written as 1000 is one of the next unit.
        while (Math.abs(shown) >= STEP - 0.5 && unit < units.length - 1) {
            shown /= STEP;
            unit++;
        }
        double size = Math.abs(shown);
        boolean whole = size >= 99.95 || shown == 0 || units[unit].equals("B");
        String digits = whole ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f";
        return new Quantity(value, Decimals.of(digits, shown) + " " + units[unit] + per);
    }

    /** What tables sort it by; nothing where there is no number. */
    String key() {
        return Double.isNaN(value) ? "" : Double.toString(value);
    }

    @Override
    public String toString() {
        return text;
    }
}
