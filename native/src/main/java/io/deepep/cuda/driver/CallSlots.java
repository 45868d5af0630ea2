package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Where the driver writes its answers: off-heap words of the calling thread, so that a call
 * allocates nothing. An answer is read before the next call that uses the same word.
 */
public final class CallSlots {
    private static final ThreadLocal<CallSlots> SLOTS = ThreadLocal.withInitial(CallSlots::new);

    private final MemorySegment context;
    private final MemorySegment first;
    private final MemorySegment second;

    private CallSlots() {
        // A line of its own: neighbours in the C heap may belong to other threads.
        MemorySegment line = Arena.ofAuto().allocate(128, 128);
        context = line.asSlice(0, ADDRESS);
        first = line.asSlice(8, JAVA_LONG);
        second = line.asSlice(16, JAVA_LONG);
    }

    /** Only for the question which context is current, which comes before other calls. */
    public static MemorySegment context() {
        return SLOTS.get().context;
    }

    public static MemorySegment first() {
        return SLOTS.get().first;
    }

    public static MemorySegment second() {
        return SLOTS.get().second;
    }

    public static long asLong(MemorySegment slot) {
        return slot.get(JAVA_LONG, 0);
    }

    public static int asInt(MemorySegment slot) {
        return slot.get(JAVA_INT, 0);
    }
}
