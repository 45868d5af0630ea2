package io.deepep.error;

/**
 * What can go wrong apart from misuse of the API. Invalid arguments cause an {@link
 * IllegalArgumentException}, use after close or in a wrong state an {@link IllegalStateException};
 * both are thrown before anything is started.
 */
public abstract sealed class DeepEpException extends RuntimeException
        permits AbiMismatchException,
                CapacityExceededException,
                DeepEpTimeoutException,
                DeepEpUnavailableException,
                NativeCallException,
                RankMismatchException,
                RoutingException {
    private static final long serialVersionUID = 1L;

    DeepEpException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * Whether the device's context is lost, so that no buffer of this process on that device can
     * continue.
     */
    public boolean isFatal() {
        return false;
    }
}
