package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.error.NativeCallException;
import java.lang.foreign.MemorySegment;

/**
 * Why a queue pair has failed, as whoever saw it first wrote it: a kernel, or the host if it could
 * not connect it.
 *
 * @param kind what was seen
 * @param peer rank at the other end
 * @param queue number of the queue pair
 * @param syndrome of an error completion, otherwise 0
 * @param vendorSyndrome the vendor's, of an error completion
 * @param entry the 16 bits of an error completion that name its entry
 * @param waitedFor index of the entry that had to be completed, or written, before the kernel could
 *     go on
 */
record IbgdaFault(
        int kind,
        int peer,
        int queue,
        int syndrome,
        int vendorSyndrome,
        int entry,
        long waitedFor) {
    static final int ERROR_COMPLETION = 1;
    static final int NO_ROOM = 2;
    static final int NO_TURN = 3;
    static final int NO_COMPLETION = 4;

    /** Kernels know nothing of it: they only see that the queue pair has failed. */
    static final int NOT_CONNECTED = -1;

    /** Reads the fault; null if there is none. */
    static IbgdaFault read(MemorySegment memory) {
        // acquire; pairs with the fence before the kernel's store
        int kind = (int) JAVA_INT.varHandle().getAcquire(memory, IbgdaStructs.FAULT.offset("kind"));
        if (kind == 0) {
            return null;
        }
        return new IbgdaFault(
                kind,
                getInt(memory, "peer"),
                getInt(memory, "queue"),
                getInt(memory, "syndrome"),
                getInt(memory, "vendor_syndrome"),
                getInt(memory, "entry"),
                memory.get(JAVA_LONG, IbgdaStructs.FAULT.offset("waited_for")));
    }

    /** The error that a queue pair's latest completion reports; null if it does not. */
    static IbgdaFault ofCompletion(int peer, int number, MemorySegment completion) {
        if (!Completion.isError(completion)) {
            return null;
        }
        return new IbgdaFault(
                ERROR_COMPLETION,
                peer,
                number,
                Completion.syndrome(completion),
                Completion.vendorSyndrome(completion),
                Completion.index(completion),
                0);
    }

    /**
     * Writes that a queue pair could not be connected where {@link #read} finds it, before any
     * kernel does.
     */
    static void writeUnconnected(MemorySegment memory, int peer, int number) {
        setInt(memory, "peer", peer);
        setInt(memory, "queue", number);
        setInt(memory, "kind", NOT_CONNECTED);
    }

    private static void setInt(MemorySegment memory, String field, int value) {
        memory.set(JAVA_INT, IbgdaStructs.FAULT.offset(field), value);
    }

    private static int getInt(MemorySegment memory, String field) {
        return memory.get(JAVA_INT, IbgdaStructs.FAULT.offset(field));
    }

    /**
     * The error for the user.
     *
     * @param port that the queue pair uses, as {@code mlx5_0:1}
     */
    NativeCallException toException(String port) {
        String where = "queue pair 0x%x through %s to rank %s".formatted(queue, port, peer);
        String name =
                switch (kind) {
                    case ERROR_COMPLETION ->
                            "%s, vendor syndrome 0x%x, at entry %d"
                                    .formatted(describe(syndrome), vendorSyndrome, entry);
                    case NO_ROOM ->
                            "the queue stayed full: entry " + (waitedFor - 1) + " did not complete";
                    case NO_TURN -> "entries before " + waitedFor + " were never written";
                    case NO_COMPLETION -> "entry " + (waitedFor - 1) + " did not complete";
                    case NOT_CONNECTED -> "it could not be connected";
                    default -> "fault " + kind;
                };
        return new NativeCallException("put", syndrome, name, where, false);
    }

    /** Why a network card could not execute an entry, as its completion says (mlx5). */
    private static String describe(int syndrome) {
        return switch (syndrome) {
            case 0x01 -> "LOCAL_LENGTH_ERROR"; // a segment of the wrong length
            case 0x02 -> "LOCAL_QP_OPERATION_ERROR"; // the queue pair could not execute it
            case 0x04 -> "LOCAL_PROTECTION_ERROR"; // the local key does not cover the local memory
            case 0x05 -> "WORK_REQUEST_FLUSHED"; // an earlier entry of the queue failed
            case 0x11 -> "LOCAL_ACCESS_ERROR"; // no access to the local memory
            case 0x12 -> "REMOTE_INVALID_REQUEST"; // the peer does not understand the request
            case 0x13 -> "REMOTE_ACCESS_ERROR"; // the remote key does not cover the remote memory
            case 0x14 -> "REMOTE_OPERATION_ERROR"; // the peer could not complete it
            case 0x15 -> "TRANSPORT_RETRY_EXCEEDED"; // the peer does not answer
            case 0x16 -> "RECEIVER_NOT_READY_RETRY_EXCEEDED"; // the peer is not ready to receive
            case 0x22 -> "REMOTE_ABORTED"; // the peer has ended the operation
            default -> "syndrome 0x" + Integer.toHexString(syndrome);
        };
    }
}
