package io.deepep.testkit.nic;

/** Device code did what a network card must not be given. */
public final class NicMisuseException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    NicMisuseException(String message) {
        super(message);
    }
}
