package io.deepep.error;

/** A call of a native library failed. */
public final class NativeCallException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final String call;
    private final int code;
    private final boolean fatal;

    /**
     * Creates the exception.
     *
     * @param call the function
     * @param code what it returned
     * @param name the name of the code in the library's headers
     * @param where the device or object that the call was for
     * @param fatal whether the CUDA context of the device is lost
     */
    public NativeCallException(String call, int code, String name, String where, boolean fatal) {
        super(call + " failed on " + where + ": " + name + " (" + code + ")", null);
        this.call = call;
        this.code = code;
        this.fatal = fatal;
    }

    /** The function that failed. */
    public String call() {
        return call;
    }

    /** What it returned. */
    public int code() {
        return code;
    }

    @Override
    public boolean isFatal() {
        return fatal;
    }
}
