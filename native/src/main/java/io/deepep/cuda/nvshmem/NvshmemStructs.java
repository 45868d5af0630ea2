package io.deepep.cuda.nvshmem;

import static io.deepep.cuda.driver.CuStructs.offset;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * The structs that NVSHMEM is handed. Each begins with a version: the number 1 in the upper and the
 * struct's size in the lower 16 bits.
 */
final class NvshmemStructs {
    private static final int VERSION_1 = 1 << 16;

    /** {@code nvshmemx_uniqueid_t}. */
    static final StructLayout UNIQUE_ID =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.sequenceLayout(124, JAVA_BYTE).withName("internal"));

    /** {@code nvshmemx_uniqueid_args_t}. */
    private static final StructLayout UNIQUE_ID_ARGS =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.paddingLayout(4),
                    ADDRESS.withName("id"),
                    JAVA_INT.withName("myrank"),
                    JAVA_INT.withName("nranks"));

    /** {@code nvshmemx_init_args_t}. */
    private static final StructLayout INIT_ARGS =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.paddingLayout(4),
                    UNIQUE_ID_ARGS.withName("uid_args"),
                    MemoryLayout.sequenceLayout(96, JAVA_BYTE).withName("content"));

    /** {@code nvshmemx_init_attr_t}. */
    static final StructLayout INIT_ATTR =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.paddingLayout(4),
                    ADDRESS.withName("mpi_comm"),
                    INIT_ARGS.withName("args"));

    private NvshmemStructs() {}

    private static int version(StructLayout struct) {
        return VERSION_1 | (int) struct.byteSize();
    }

    /** An empty id. */
    static MemorySegment uniqueId(Arena arena) {
        MemorySegment id = arena.allocate(UNIQUE_ID);
        id.set(JAVA_INT, 0, version(UNIQUE_ID));
        return id;
    }

    /** Attributes without arguments. */
    static MemorySegment initAttr(Arena arena) {
        MemorySegment attr = arena.allocate(INIT_ATTR);
        attr.set(JAVA_INT, 0, version(INIT_ATTR));
        attr.set(JAVA_INT, offset(INIT_ATTR, "args"), version(INIT_ARGS));
        attr.set(JAVA_INT, offset(INIT_ATTR, "args", "uid_args"), version(UNIQUE_ID_ARGS));
        return attr;
    }
}
