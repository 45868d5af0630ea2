package io.deepep.cuda.ibgda;

import java.util.Arrays;
import java.util.Optional;

/** Why a network card could not execute an entry, as its completion says (mlx5). */
public enum Syndrome {
    /** A segment of the wrong length. */
    LOCAL_LENGTH_ERROR(0x01),
    /** The queue pair could not execute it. */
    LOCAL_QP_OPERATION_ERROR(0x02),
    /** The local key does not cover the local memory. */
    LOCAL_PROTECTION_ERROR(0x04),
    /** Not executed, because an earlier entry of the queue failed. */
    WORK_REQUEST_FLUSHED(0x05),
    /** No access to the local memory. */
    LOCAL_ACCESS_ERROR(0x11),
    /** The peer does not understand the request. */
    REMOTE_INVALID_REQUEST(0x12),
    /** The remote key does not cover the remote memory. */
    REMOTE_ACCESS_ERROR(0x13),
    /** The peer could not complete it. */
    REMOTE_OPERATION_ERROR(0x14),
    /** The peer does not answer. */
    TRANSPORT_RETRY_EXCEEDED(0x15),
    /** The peer is not ready to receive. */
    RECEIVER_NOT_READY_RETRY_EXCEEDED(0x16),
    /** The peer has ended the operation. */
    REMOTE_ABORTED(0x22);

    private final int code;

    Syndrome(int code) {
        this.code = code;
    }

    /** Its name for messages, or its number where it has none. */
    public static String describe(int code) {
        Optional<Syndrome> known = Arrays.stream(values()).filter(s -> s.code == code).findFirst();
        return known.map(Enum::name).orElse("syndrome 0x" + Integer.toHexString(code));
    }
}
