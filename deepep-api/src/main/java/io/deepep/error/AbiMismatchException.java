package io.deepep.error;

/** Device code was built with other layouts of memory than the Java code that loads it. */
public final class AbiMismatchException extends DeepEpException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception. */
    public AbiMismatchException(String message) {
        super(message, null);
    }
}
