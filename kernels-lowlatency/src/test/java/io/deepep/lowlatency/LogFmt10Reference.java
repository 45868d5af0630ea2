package io.deepep.lowlatency;

import io.deepep.Bf16;

/** One block of {@link LogFmt10} by its definition: a logarithm or a power for each channel. */
final class LogFmt10Reference {
    private static final int LARGEST_CODE = 511;
    private static final int SIGN = 512;
    private static final double LN2 = StrictMath.log(2);

    final float base;
    final float step;
    final int[] codes;

    LogFmt10Reference(float base, float step, int... codes) {
        this.base = base;
        this.step = step;
        this.codes = codes;
    }

    static LogFmt10Reference encode(short[] bf16) {
        float largest = 0;
        float smallest = Float.POSITIVE_INFINITY;
        boolean finite = true;
        for (short element : bf16) {
            float magnitude = Math.abs(Bf16.toFloat(element));
            finite &= Float.isFinite(magnitude);
            largest = Math.max(largest, magnitude);
            smallest = magnitude > 0 ? Math.min(smallest, magnitude) : smallest;
        }
        int[] codes = new int[bf16.length];
        if (!finite || largest == 0) {
            return new LogFmt10Reference(finite ? 0 : Float.NaN, 0, codes);
        }
        double top = log2(largest);
        float base = (float) Math.max(log2(smallest), top - LogFmt10.MAX_RANGE);
        float step = (float) (Math.max(top - base, 0) / (LARGEST_CODE - 1));
        for (int i = 0; i < codes.length; i++) {
            codes[i] = code(Bf16.toFloat(bf16[i]), base, step);
        }
        return new LogFmt10Reference(base, step, codes);
    }

    private static int code(float value, float base, float step) {
        int sign = Float.floatToRawIntBits(value) < 0 ? SIGN : 0;
        double magnitude = Math.abs((double) value);
        if (magnitude < StrictMath.pow(2, base) / 2) {
            return sign;
        }
        double steps = step == 0 ? 0 : Math.rint((log2(magnitude) - base) / step);
        return sign | (int) Math.clamp(1 + steps, 1, LARGEST_CODE);
    }

    private static double log2(double value) {
        return StrictMath.log(value) / LN2;
    }

    float value(int channel) {
        if (Float.isNaN(base)) {
            return Float.NaN;
        }
        int magnitude = codes[channel] & LARGEST_CODE;
        double exponent = base + (magnitude - 1) * (double) step;
        float value = magnitude == 0 ? 0 : (float) StrictMath.pow(2, exponent);
        return (codes[channel] & SIGN) == 0 ? value : -value;
    }
}
