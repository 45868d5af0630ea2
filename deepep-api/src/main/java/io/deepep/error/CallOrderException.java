package io.deepep.error;

/**
 * Half of an operation was called out of order, such as a receive hook that has already run.
 * Nothing was started, and the ranks are still in step.
 */
public final class CallOrderException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception; the message says what must come first. */
    public CallOrderException(String message) {
        super(message);
    }
}
