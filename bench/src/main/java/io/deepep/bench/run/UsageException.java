package io.deepep.bench.run;

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

    /** Repeats what the library said about the user's values. */
    public static UsageException of(RuntimeException refusal) {
        UsageException usage = new UsageException(refusal.getMessage());
        usage.initCause(refusal);
        return usage;
    }
}
