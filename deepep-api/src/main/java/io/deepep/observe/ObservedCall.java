package io.deepep.observe;

import io.deepep.Device;

/**
 * One dispatch or combine of one rank, reported when it is over. Every operation has two halves,
 * and each is timed on the thread that runs it, so that an asynchronous call is not mistaken for a
 * fast one:
 *
 * <ul>
 *   <li>Host backend: the halves are the work itself. Synchronous calls run both on the caller's
 *       thread, asynchronous ones on the communication stream's, and a receive hook runs the
 *       second.
 *   <li>CUDA: the first half enqueues (and waits for the counts of a dispatch that needs them), the
 *       second is the wait of the thread that asks the event for the end; with a receive hook it is
 *       the hook, and asking before the hook ends nothing. An engine that orders its streams never
 *       asks: such a run is reported when its plan is used again, as not {@link #finished}. {@link
 *       #deviceNanos} is still its time on the GPU.
 * </ul>
 *
 * @param kind which operation
 * @param device where the rank's tensors lie
 * @param facts what was moved and waited for
 * @param beginNanos duration of the first half
 * @param completeNanos duration of the second half; 0 if it did not run
 * @param spanNanos from the start of the first half to the end of the second, including the time
 *     between them; 0 if the second did not run
 * @param deviceNanos on GPUs, from the start of the first kernel to the end of the last one; with a
 *     receive hook, the sum of both halves without the time between them; {@link CallFacts#UNKNOWN}
 *     on the host, of runs that failed, and while the GPU is not done
 * @param finished whether the second half ran without failure: then all of {@code facts} is final
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
