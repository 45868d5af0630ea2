package io.deepep.observe;

import io.deepep.Device;

/**
 * The report of one dispatch or combine of a rank. Every operation has two halves, each timed on
 * the thread that runs it, so that an asynchronous call does not look like a fast one:
 *
 * <ul>
 *   <li>Host backend: the halves are the work itself. Synchronous calls run both on the calling
 *       thread, asynchronous calls on the thread of the communication stream; a receive hook runs
 *       the second half.
 *   <li>CUDA backend: the first half enqueues the work, and waits for the counts of a dispatch that
 *       needs them. The second half is the wait of the thread that synchronizes with the event or,
 *       with a receive hook, the hook. If an engine orders its streams and never waits on the CPU,
 *       a run is reported when its plan is used again, as not {@link #finished}; {@link
 *       #deviceNanos} is its time on the GPU all the same.
 * </ul>
 *
 * @param kind the operation
 * @param device the device that the rank's tensors are on
 * @param facts what was moved and waited for
 * @param beginNanos duration of the first half
 * @param completeNanos duration of the second half; 0 if it did not run
 * @param spanNanos time from the start of the first half to the end of the second, including the
 *     time between them; 0 if the second did not run
 * @param deviceNanos time on the GPU from the start of the first kernel to the end of the last;
 *     with a receive hook, the sum of both halves without the time between them. {@link
 *     CallFacts#UNKNOWN} on the host, for runs that failed, and while the GPU has not finished
 * @param finished whether the second half ran without failure, so that {@code facts} is final
 * @param failure what the run threw, or null
 */
public record ObservedCall(
        CallKind kind,
        Device device,
        CallFacts facts,
        long beginNanos,
        long completeNanos,
        long spanNanos,
        long deviceNanos,
        boolean finished,
        Throwable failure) {
    /** The time that threads of the host spent in the operation. */
    public long hostNanos() {
        return beginNanos + completeNanos;
    }
}
