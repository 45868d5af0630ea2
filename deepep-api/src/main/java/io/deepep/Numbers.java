package io.deepep;

/** Refuses numbers out of their range, in the same words everywhere. */
final class Numbers {
    private Numbers() {}

    /** Returns {@code value} if it is one of {@code min} to {@code max}. */
    static int requireIn(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    "%s=%s is not in [%s, %s]".formatted(name, value, min, max));
        }
        return value;
    }

    /** Returns {@code value} if it is positive. */
    static int requirePositive(String name, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least 1");
        }
        return value;
    }
}
