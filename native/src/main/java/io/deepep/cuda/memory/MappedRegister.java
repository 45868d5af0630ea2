package io.deepep.cuda.memory;

import io.deepep.cuda.CudaContext;

/**
 * A register of another device, mapped into this process, as kernels reach it.
 *
 * @param context whose kernels
 * @param address in this process
 * @param deviceAddress for kernels
 */
public record MappedRegister(CudaContext context, long address, long deviceAddress)
        implements AutoCloseable {
    /**
     * Maps it. One register may be mapped several times.
     *
     * @throws io.deepep.error.NativeCallException if the driver does not: it needs {@code
     *     PeerMappingOverride=1} in {@code NVreg_RegistryDwords}
     */
    public static MappedRegister of(CudaContext context, long address, long numBytes) {
        context.makeCurrent();
        return new MappedRegister(
                context, address, Registrations.OF_PROCESS.open(address, numBytes));
    }

    /** Waits for the kernels of the GPU. */
    @Override
    public void close() {
        context.makeCurrent();
        Registrations.OF_PROCESS.close(address);
    }
}
