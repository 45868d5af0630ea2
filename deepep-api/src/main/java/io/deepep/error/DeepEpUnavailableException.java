package io.deepep.error;

/** A backend or library cannot be used on this machine. */
public final class DeepEpUnavailableException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final String reason;
    private final String cure;

    /** Creates the error from what is missing and what to do about it. */
    public DeepEpUnavailableException(String reason, String cure, Throwable cause) {
        super(reason + "; " + cure, cause);
        this.reason = reason;
        this.cure = cure;
    }

    /** What is missing. */
    public String reason() {
        return reason;
    }

    /** What to do about it. */
    public String cure() {
        return cure;
    }
}
