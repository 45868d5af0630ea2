package io.deepep.bench.run;

import io.deepep.error.DeepEpUnavailableException;

/**
 * What a rank of a {@link RankTeam} threw: the first failure in time; those of other ranks are
 * suppressed exceptions.
 */
public final class RankFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RankFailure(int rank, Throwable cause) {
        super(
                "rank " + rank + ": " + (cause.getMessage() == null ? cause : cause.getMessage()),
                cause);
    }

    /** What the library refuses as the user's mistake; this, if it is none. */
    RuntimeException asUsage() {
        return switch (getCause()) {
            case IllegalArgumentException refused -> UsageException.of(refused);
            case DeepEpUnavailableException refused -> UsageException.of(refused);
            default -> this;
        };
    }
}
