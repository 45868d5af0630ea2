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

    /** Of a queue pair that could not be connected. */
    static IbgdaFault ofConnection(int peer, int number) {
        return new IbgdaFault(NOT_CONNECTED, peer, number, 0, 0, 0, 0);
    }

    /** Writes it where {@link #read} finds it, before any kernel does. */
    void write(MemorySegment memory) {
        setInt(memory, "peer", peer);
        setInt(memory, "queue", queue);
        setInt(memory, "kind", kind);
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
                                    .formatted(Syndrome.describe(syndrome), vendorSyndrome, entry);
                    case NO_ROOM ->
                            "the queue stayed full: entry " + (waitedFor - 1) + " did not complete";
                    case NO_TURN -> "entries before " + waitedFor + " were never written";
                    case NO_COMPLETION -> "entry " + (waitedFor - 1) + " did not complete";
                    case NOT_CONNECTED -> "it could not be connected";
                    default -> "fault " + kind;
                };
        return new NativeCallException("put", syndrome, name, where, false);
    }
}
