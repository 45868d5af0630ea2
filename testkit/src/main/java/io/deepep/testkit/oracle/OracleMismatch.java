package io.deepep.testkit.oracle;

import java.util.Objects;

/** A result is not what the oracle says it must be. */
public final class OracleMismatch extends AssertionError {
    private static final long serialVersionUID = 1L;

    /** Creates the error; the message says where, what was expected and what was seen. */
    public OracleMismatch(String message) {
        super(message);
    }

    /** Requires that both are the same, or equal. */
    static void requireEqual(String what, Object expected, Object seen) {
        require(Objects.equals(expected, seen), what, expected, seen);
    }

    static void requireNull(String what, Object seen) {
        require(seen == null, what, null, seen);
    }

    static void require(boolean condition, String what, Object expected, Object seen) {
        if (!condition) {
            throw new OracleMismatch(what + ": expected " + expected + ", saw " + seen);
        }
    }
}
