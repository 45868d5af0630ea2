package io.deepep.error;

/** A device, network or library that was asked for cannot be used on this machine. */
public final class DeepEpUnavailableException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final String reason;
    private final String cure;

    /**
     * Creates the exception.
     *
     * @param reason what is missing, as part of a sentence
     * @param cure what to do about it, as part of a sentence
     * @param cause the cause, or null
     */
    public DeepEpUnavailableException(String reason, String cure, Throwable cause) {
        super(reason + "; " + cure, cause);
        this.reason = reason;
        this.cure = cure;
    }

    /** The same without a cause. */
    public DeepEpUnavailableException(String reason, String cure) {
        this(reason, cure, null);
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
