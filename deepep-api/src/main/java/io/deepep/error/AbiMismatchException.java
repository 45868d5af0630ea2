package io.deepep.error;

/** A binary was built from different layouts than the Java code that loads it. */
public final class AbiMismatchException extends DeepEpException {
    private static final long serialVersionUID = 1L;

    /** Creates the error. */
    public AbiMismatchException(String message) {
        super(message, null);
    }
}
