package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;

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
            CuCall.of("cuMemHostRegister_v2", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final CuCall UNREGISTER = CuCall.of("cuMemHostUnregister", JAVA_LONG);
    private static final CuCall GET_DEVICE_POINTER =
            CuCall.of("cuMemHostGetDevicePointer_v2", ADDRESS, JAVA_LONG, JAVA_INT);

    /** By address, which the driver takes once, in all contexts together. */
    private static final SharedMappings<Long, Long> REGISTERED =
            new SharedMappings<>(UNREGISTER::call);

    /**
     * Maps it. One register may be mapped several times.
     *
     * @throws io.deepep.error.NativeCallException if the driver does not: it needs {@code
     *     PeerMappingOverride=1} in {@code NVreg_RegistryDwords}
     */
    public static MappedRegister of(CudaContext context, long address, long numBytes) {
        long deviceAddress =
                REGISTERED.open(
                        context::makeCurrent,
                        address,
                        () -> register(address, numBytes),
                        registered -> GET_DEVICE_POINTER.ask(registered, 0));
        return new MappedRegister(context, address, deviceAddress);
    }

    private static long register(long address, long numBytes) {
        REGISTER.call(address, numBytes, PORTABLE_MAPPED_IO_MEMORY);
        return address;
    }

    /** Waits for the kernels of the GPU. */
    @Override
    public void close() {
        REGISTERED.close(context::makeCurrent, address);
    }
}
