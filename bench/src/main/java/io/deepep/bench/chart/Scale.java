package io.deepep.bench.chart;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * An axis: values on it, and where they lie.
 *
 * @param from pixel of {@code least}
 * @param to pixel of {@code most}
 * @param step from one mark to the next; on a logarithmic axis their ratio
 * @param logarithmic whether equal distances are equal ratios
 */
record Scale(double least, double most, double from, double to, double step, boolean logarithmic) {
    private static final double[] STEPS = {1, 2, 5};
    private static final double ROUNDING = 1e-9;

    /** From 0 to a round number that is not below {@code most}, in at most {@code numSteps}. */
    static Scale upTo(double most, int numSteps, double from, double to) {
        double reached = most > 0 ? most : 1; // an axis of nothing has marks too
        double step = step(reached, numSteps);
        return new Scale(0, Math.ceil(reached / step - ROUNDING) * step, from, to, step, false);
    }

    /** Between powers of ten or two, whatever {@code base} is. */
    static Scale logarithmic(double least, double most, int base, double from, double to) {
        double low = Math.pow(base, Math.floor(log(least, base) + ROUNDING));
        double high = Math.pow(base, Math.ceil(log(most, base) - ROUNDING));
        return new Scale(low, high > low ? high : low * base, from, to, base, true);
    }

    private static double log(double value, int base) {
        return Math.log(value) / Math.log(base);
    }

    /** The smallest of 1, 2, 5 times a power of ten that divides {@code most} into few steps. */
    private static double step(double most, int numSteps) {
        double power = Math.pow(10, Math.floor(Math.log10(most / numSteps)));
        for (double factor : STEPS) {
            if (most / (factor * power) <= numSteps + ROUNDING) {
                return factor * power;
            }
        }
        return 10 * power;
    }

    double at(double value) {
        double share =
                logarithmic
                        ? Math.log(value / least) / Math.log(most / least)
                        : (value - least) / (most - least);
        return from + share * (to - from);
    }

    /** Values that are marked: round ones, or powers of the base. */
    List<Double> ticks() {
        List<Double> ticks = new ArrayList<>();
        double tick = least;
        for (int i = 1; tick <= most * (1 + ROUNDING); i++) {
            ticks.add(tick);
            tick = logarithmic ? tick * step : least + i * step;
        }
        return ticks;
    }

    /** With three digits, thousands apart, and no zeros behind the point. */
    static String number(double value) {
        if (value == 0) {
            return "0";
        }
        int digits = Math.clamp(2 - (int) Math.floor(Math.log10(Math.abs(value))), 0, 6);
        String text = String.format(Locale.ROOT, "%,." + digits + "f", value);
        return text.contains(".") ? text.replaceAll("\\.?0+$", "") : text;
    }
}
