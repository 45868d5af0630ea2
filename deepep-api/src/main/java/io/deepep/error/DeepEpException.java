package io.deepep.error;

/**
 * The superclass of all failures other than misuse of the API. Invalid arguments cause an {@link
 * IllegalArgumentException}, and use after close or in a wrong state causes an {@link
 * IllegalStateException}; both are thrown before anything is started.
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
     * Whether the CUDA context of the device is lost, so that no buffer of this process on that
     * device can continue.
     */
    public boolean isFatal() {
        return false;
    }
}
