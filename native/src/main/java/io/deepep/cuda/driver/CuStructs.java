package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.StructLayout;
import java.util.stream.Stream;

/** The structs of {@code cuda.h} that the driver is handed, field by field. */
public final class CuStructs {
    /** {@code CUlaunchConfig}. */
    public static final StructLayout LAUNCH_CONFIG =
            MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(3, JAVA_INT).withName("gridDim"),
                    MemoryLayout.sequenceLayout(3, JAVA_INT).withName("blockDim"),
                    JAVA_INT.withName("sharedMemBytes"),
                    MemoryLayout.paddingLayout(4),
                    JAVA_LONG.withName("hStream"),
                    ADDRESS.withName("attrs"),
                    JAVA_INT.withName("numAttrs"),
                    MemoryLayout.paddingLayout(4));

    /** {@code CUlaunchAttribute}; the value is a union of 64 bytes. */
    public static final StructLayout LAUNCH_ATTRIBUTE =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("id"),
                    MemoryLayout.paddingLayout(4),
                    MemoryLayout.sequenceLayout(16, JAVA_INT)
                            .withByteAlignment(8)
                            .withName("value"));

    /** {@code CUmemLocation}. */
    static final StructLayout MEM_LOCATION =
            MemoryLayout.structLayout(JAVA_INT.withName("type"), JAVA_INT.withName("id"));

    /** {@code CUmemAllocationProp}. */
    public static final StructLayout MEM_ALLOCATION_PROP =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("type"),
                    JAVA_INT.withName("requestedHandleTypes"),
                    MEM_LOCATION.withName("location"),
                    ADDRESS.withName("win32HandleMetaData"),
                    JAVA_BYTE.withName("compressionType"),
                    JAVA_BYTE.withName("gpuDirectRdmaCapable"),
                    JAVA_SHORT.withName("usage"),
                    MemoryLayout.paddingLayout(4));

    /** {@code CUmemAccessDesc}. */
    public static final StructLayout MEM_ACCESS_DESC =
            MemoryLayout.structLayout(
                    MEM_LOCATION.withName("location"), JAVA_INT.withName("flags"));

    /** {@code CUipcMemHandle}, passed by value. */
    public static final StructLayout IPC_HANDLE =
            MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(64, JAVA_BYTE).withName("reserved"));

    private CuStructs() {}

    /** Where a field, or a field of a field, begins. */
    public static long offset(StructLayout struct, String... path) {
        return struct.byteOffset(
                Stream.of(path).map(PathElement::groupElement).toArray(PathElement[]::new));
    }
}
