package io.deepep;

import io.deepep.spi.BufferProvider;
import java.util.Objects;

/**
 * Where memory lies and where work runs.
 *
 * @param kind host memory or a CUDA GPU
 * @param index ordinal of the GPU as the CUDA driver numbers it; 0 for the host
 */
public record Device(Kind kind, int index) {
    /** Kinds of devices. */
    public enum Kind {
        /** The JVM's own machine; tensors are off-heap memory. */
        HOST,
        /** An NVIDIA GPU. */
        CUDA
    }

    private static final Device HOST = new Device(Kind.HOST, 0);

    /** Validates the index. */
    public Device {
        Objects.requireNonNull(kind, "kind");
        if (index < 0 || (kind == Kind.HOST && index != 0)) {
            throw new IllegalArgumentException(
                    "device index=" + index + " is not valid for " + kind);
        }
    }

    /** The host. */
    public static Device host() {
        return HOST;
    }

    /** The GPU with the given CUDA ordinal. */
    public static Device cuda(int index) {
        return new Device(Kind.CUDA, index);
    }

    /**
     * GPUs that buffers can use in this process: those of {@code cuda(0)} up to this number. 0
     * without a driver, or without {@code --enable-native-access}. Starts the driver with the
     * settings that ranks on a shared GPU need, so call it before anything else starts the driver.
     */
    public static int numCudaDevices() {
        return BufferProvider.load().numCudaDevices();
    }

    /** Whether Java can read tensors of this device directly. */
    public boolean isHost() {
        return kind == Kind.HOST;
    }

    @Override
    public String toString() {
        return isHost() ? "host" : "cuda:" + index;
    }
}
