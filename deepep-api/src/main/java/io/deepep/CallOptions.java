package io.deepep;

/**
 * How a call is ordered with respect to other work. Immutable; one instance can serve every call.
 *
 * @param computeStream the stream that produces the inputs and consumes the outputs: the call
 *     starts after the work that is on it now and, unless the call is asynchronous, later work on
 *     it waits for the call. {@code null} stands for the calling thread, which then waits itself.
 *     Calls on the buffer's own {@linkplain Buffer#communicationStream() communication stream} are
 *     in that order at no cost; the event of a synchronous low-latency call on it marks the end of
 *     the stream at the time when the event is used
 * @param previousEvent the call starts after this event instead of after all work of {@code
 *     computeStream}; may be {@code null}
 * @param asyncFinish if true, the call returns once its shapes are known, and the tensors are ready
 *     when the result's event is done; if false, the compute stream (or the calling thread) waits
 *     for the call
 */
public record CallOptions(Stream computeStream, Event previousEvent, boolean asyncFinish) {
    private static final CallOptions SYNC = new CallOptions(null, null, false);
    private static final CallOptions ASYNC = new CallOptions(null, null, true);

    /** A synchronous call: the compute stream, or else the calling thread, waits for it. */
    public static CallOptions sync() {
        return SYNC;
    }

    /** An asynchronous call: it has finished when the result's event is done. */
    public static CallOptions async() {
        return ASYNC;
    }

    /** A copy of these options for a call that starts after {@code event}. */
    public CallOptions after(Event event) {
        return new CallOptions(computeStream, event, asyncFinish);
    }

    /** A copy of these options with another compute stream. */
    public CallOptions on(Stream stream) {
        return new CallOptions(stream, previousEvent, asyncFinish);
    }
}
