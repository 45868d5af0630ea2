package io.deepep.normal.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.KernelParams;
import java.lang.foreign.Arena;

/** The arguments of {@code deepep_normal_offsets}. */
final class OffsetsParams {
    private final KernelParams memory;

    OffsetsParams(Arena arena) {
        memory = KernelParams.arguments(arena, JAVA_LONG, JAVA_LONG, JAVA_INT);
    }

    void set(long counts, long offsets, int numExperts) {
        memory.setLong(memory.offset(0), counts)
                .setLong(memory.offset(1), offsets)
                .setInt(memory.offset(2), numExperts);
    }

    KernelParams memory() {
        return memory;
    }
}
