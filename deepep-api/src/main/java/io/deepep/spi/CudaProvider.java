package io.deepep.spi;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import java.util.Optional;

/**
 * Wraps objects of the CUDA driver, given by their handles and addresses: the implementation behind
 * {@link Stream#cuda}, {@link Event#cuda} and {@link io.deepep.Tensor#cuda}, found by the service
 * loader.
 */
public interface CudaProvider {
    /** See {@link Stream#cuda}. */
    Stream stream(Device device, long handle);

    /** See {@link Event#cuda}. */
    Event event(Device device, long handle);

    /**
     * The allocation of GPU memory that contains {@code address}; empty if the driver knows none.
     */
    Optional<Memory> memoryAt(long address);

    /**
     * An allocation of GPU memory.
     *
     * @param device the GPU
     * @param base its first address
     * @param numBytes its size in bytes
     */
    record Memory(Device device, long base, long numBytes) {}

    /**
     * The provider for a GPU.
     *
     * @throws IllegalArgumentException if {@code device} is the host
     */
    static CudaProvider of(Device device) {
        if (device.isHost()) {
            throw new IllegalArgumentException(
                    "device=host has no CUDA streams or events; give a GPU, Device.cuda(index)");
        }
        return load();
    }

    /**
     * Finds the provider.
     *
     * @throws io.deepep.error.DeepEpUnavailableException if there is none
     */
    static CudaProvider load() {
        return Providers.load(CudaProvider.class, "deepep", Providers.JLINK_LIBRARY);
    }
}
