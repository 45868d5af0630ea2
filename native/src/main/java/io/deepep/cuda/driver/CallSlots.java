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
    private static final int CONTEXT = 0;
    private static final int FIRST = 1;
    private static final int SECOND = 2;

    /** No class of ours: a thread that goes on would keep the loader of the library. */
    private static final ThreadLocal<MemorySegment[]> SLOTS =
            ThreadLocal.withInitial(CallSlots::allocate);

    private CallSlots() {}

    private static MemorySegment[] allocate() {
        // A line of its own: neighbours in the C heap may belong to other threads.
        MemorySegment line = Arena.ofAuto().allocate(128, 128);
        return new MemorySegment[] {
            line.asSlice(0, ADDRESS), line.asSlice(8, JAVA_LONG), line.asSlice(16, JAVA_LONG)
        };
    }

    /** Only for the question which context is current, which comes before other calls. */
    public static MemorySegment context() {
        return SLOTS.get()[CONTEXT];
    }

    public static MemorySegment first() {
        return SLOTS.get()[FIRST];
    }

    public static MemorySegment second() {
        return SLOTS.get()[SECOND];
    }

    public static long asLong(MemorySegment slot) {
        return slot.get(JAVA_LONG, 0);
    }

    public static int asInt(MemorySegment slot) {
        return slot.get(JAVA_INT, 0);
    }
}
