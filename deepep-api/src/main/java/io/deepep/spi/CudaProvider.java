package io.deepep.spi;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.error.DeepEpUnavailableException;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Objects of the CUDA driver by their handles and addresses: the implementation behind {@link
 * Stream#cuda}, {@link Event#cuda} and {@link io.deepep.Tensor#cuda}, found by {@link
 * ServiceLoader}.
 */
public interface CudaProvider {
    /** See {@link Stream#cuda}. */
    Stream stream(Device device, long handle);

    /** See {@link Event#cuda}. */
    Event event(Device device, long handle);

    /** The GPU memory that {@code address} lies in; empty if the driver knows of none. */
    Optional<Memory> memoryAt(long address);

    /**
     * An allocation.
     *
     * @param device the GPU
     * @param base its first address
     * @param numBytes its size
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
                    "device=host has no CUDA streams and events; give the GPU, Device.cuda(index)");
        }
        return load();
    }

    /** The provider. */
    static CudaProvider load() {
        return Loaded.PROVIDER.orElseThrow(
                () ->
                        new DeepEpUnavailableException(
                                "no implementation of " + CudaProvider.class.getName() + " found",
                                "add the artifact io.deepep:deepep-native, or deepep-buffer, which"
                                        + " brings it",
                                null));
    }

    /** Looked for once: streams are made per call. */
    final class Loaded {
        private static final Optional<CudaProvider> PROVIDER =
                ServiceLoader.load(CudaProvider.class, CudaProvider.class.getClassLoader())
                        .findFirst();

        private Loaded() {}
    }
}
