package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import java.lang.foreign.MemorySegment;

/**
 * A register of another device, mapped into this process, as kernels reach it.
 *
 * @param context whose kernels
 * @param address in this process
 * @param deviceAddress for kernels
 */
public record MappedRegister(CudaContext context, long address, long deviceAddress)
        implements AutoCloseable {
    private static final int PORTABLE_MAPPED_IO_MEMORY = 1 | 2 | 4;

    private static final CuCall REGISTER =
            CuCall.of("cuMemHostRegister_v2", ADDRESS, JAVA_LONG, JAVA_INT);
    private static final CuCall UNREGISTER = CuCall.of("cuMemHostUnregister", ADDRESS);
    private static final CuCall GET_DEVICE_POINTER =
            CuCall.of("cuMemHostGetDevicePointer_v2", ADDRESS, ADDRESS, JAVA_INT);

    /**
     * Maps it.
     *
     * @throws io.deepep.error.NativeCallException if the driver does not: it needs {@code
     *     PeerMappingOverride=1} in {@code NVreg_RegistryDwords}
     */
    public static MappedRegister of(CudaContext context, long address, long numBytes) {
        context.makeCurrent();
        MemorySegment memory = MemorySegment.ofAddress(address);
        REGISTER.call(memory, numBytes, PORTABLE_MAPPED_IO_MEMORY);
        GET_DEVICE_POINTER.call(CallSlots.first(), memory, 0);
        return new MappedRegister(context, address, CallSlots.asLong(CallSlots.first()));
    }

    /** Waits for the kernels of the GPU. */
    @Override
    public void close() {
        context.makeCurrent();
        UNREGISTER.call(MemorySegment.ofAddress(address));
    }
}
