package io.deepep.bench.run;

import java.util.function.Supplier;

/**
 * The user asked for something that cannot be: ends in one line on standard error and exit code 2.
 */
public final class UsageException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The message says what was given, what is allowed and the cure. */
    public UsageException(String message) {
        super(message);
    }

    /**
     * Refuses a number outside of what an option allows, both ends included.
     *
     * @param value null if the option was not given
     */
    public static void requireIn(String option, Number value, long least, long most) {
        if (value != null && (value.longValue() < least || value.longValue() > most)) {
            throw new UsageException(
                    option + "=" + value + " is not in [" + least + ", " + most + "]");
        }
    }

    /** Refuses a number of experts that the ranks cannot share equally. */
    public static void requireShared(int numExperts, int ranks) {
        if (numExperts % ranks != 0) {
            throw new UsageException(
                    "--num-experts=%s is not a multiple of the number of ranks, %s; give %s, for example"
                            .formatted(numExperts, ranks, Math.ceilDiv(numExperts, ranks) * ranks));
        }
    }

    /**
     * What the library makes of the user's values.
     *
     * @throws UsageException with what it says about them, if it refuses them
     */
    public static <T> T unlessRefused(Supplier<T> values) {
        try {
            return values.get();
        } catch (IllegalArgumentException refused) {
            throw of(refused);
        }
    }

    /** Repeats what the library said about the user's values. */
    public static UsageException of(RuntimeException refusal) {
        UsageException usage = new UsageException(refusal.getMessage());
        usage.initCause(refusal);
        return usage;
    }
}
