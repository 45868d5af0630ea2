package io.deepep;

/**
 * How a call is ordered against other work. Immutable, so one instance can serve every call.
 *
 * @param computeStream the stream that produces the inputs and consumes the outputs: the call
 *     starts after its present work and, unless asynchronous, its later work waits for the call.
 *     {@code null} stands for the calling thread, which waits itself. On the buffer's {@linkplain
 *     Buffer#communicationStream() communication stream} the calls are already in that order, at no
 *     cost; the event of a synchronous low-latency call on it stands for the end of the stream at
 *     the time you ask for it
 * @param previousEvent the call starts after this event instead of after all work of {@code
 *     computeStream}; may be {@code null}
 * @param asyncFinish if true, the call returns once its shapes are known, and the result's event
 *     says when its tensors are ready; if false, the compute stream (or the caller) waits
 */
public record CallOptions(Stream computeStream, Event previousEvent, boolean asyncFinish) {
    private static final CallOptions SYNC = new CallOptions(null, null, false);
    private static final CallOptions ASYNC = new CallOptions(null, null, true);

    /** The call finishes before the compute stream continues. */
    public static CallOptions sync() {
        return SYNC;
    }

    /** The call runs in the background; the result's event says when it has finished. */
    public static CallOptions async() {
        return ASYNC;
    }

    /** The same options, starting after {@code event}. */
    public CallOptions after(Event event) {
        return new CallOptions(computeStream, event, asyncFinish);
    }

    /** The same options on another compute stream. */
    public CallOptions on(Stream stream) {
        return new CallOptions(stream, previousEvent, asyncFinish);
    }
}
