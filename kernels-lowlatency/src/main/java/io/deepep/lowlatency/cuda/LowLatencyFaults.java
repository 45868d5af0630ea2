package io.deepep.lowlatency.cuda;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultPhase;

/**
 * What a {@link Fault} means to the caller.
 *
 * @param errors of this kind of call
 * @param timeouts how long its kernels wait
 */
record LowLatencyFaults(LowLatencyErrors errors, CallTimeouts timeouts) {
    /** The exception for a fault. */
    RuntimeException failure(Fault fault) {
        return switch (fault.code()) {
            case EXPERT_OUT_OF_RANGE, SELECTED_TOO_OFTEN, SELECTION_CHANGED, HANDLE_INVALID ->
                    errors.ofSelections(
                            fault.code(),
                            fault.at(),
                            fault.token(),
                            fault.k(),
                            fault.seen(),
                            fault.expected());
            case HEADER_MISMATCH ->
                    errors.mismatch(fault.k(), fault.expected(), fault.at(), fault.seen());
            case TIMEOUT -> timeout(fault);
            case PEER_GONE -> givenUp(fault, "." + fault.phase().text(), fault.seen());
            case OUT_OF_STEP ->
                    errors.tooLate(
                            fault.peer(),
                            fault.phase(),
                            fault.expected(),
                            fault.seen(),
                            fault.waitedNanos());
            case OPERATION_MISMATCH -> errors.otherKind(fault.peer());
            default ->
                    throw new IllegalStateException(
                            "%s: unexpected kernel status %s"
                                    .formatted(errors.operation(), fault.code()));
        };
    }

    /** A launch that names no phase found a rank that an earlier one had lost. */
    private DeepEpTimeoutException timeout(Fault fault) {
        if (fault.phase() == FaultPhase.NONE) {
            return givenUp(
                    fault, ", having given up on it in an earlier call", fault.waitedNanos());
        }
        return errors.expired(
                timeouts,
                fault.phase().begins(),
                fault.peer(),
                fault.phase(),
                fault.expected(),
                fault.seen());
    }

    private DeepEpTimeoutException givenUp(Fault fault, String where, long waitedNanos) {
        return DeepEpTimeoutException.givenUp(
                fault.phase().begins(),
                errors.rank(),
                fault.peer(),
                errors.operation() + where,
                waitedNanos);
    }
}
