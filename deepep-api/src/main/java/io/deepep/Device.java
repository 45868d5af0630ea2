package io.deepep;

import io.deepep.spi.BufferProvider;
import java.util.Objects;

/**
 * The host or a GPU: where memory is and where work runs.
 *
 * @param kind host memory or a CUDA GPU
 * @param index ordinal of the GPU as the CUDA driver numbers it; 0 for the host
 */
public record Device(Kind kind, int index) {
    /** Kinds of devices. */
    public enum Kind {
        /** The machine that the JVM runs on; tensors are off-heap memory. */
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
                    kind == Kind.HOST
                            ? "index=" + index + " is not valid for the host; use Device.host()"
                            : "index=" + index + " is negative; CUDA numbers GPUs from 0");
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
     * Number of GPUs that buffers can use in this process, as {@code cuda(0)}, {@code cuda(1)} and
     * so on. 0 without a driver, or without {@code --enable-native-access}. Starts the driver with
     * the settings that ranks on a shared GPU need; call it before anything else starts the driver.
     */
    public static int numCudaDevices() {
        return BufferProvider.load().numCudaDevices();
    }

    /** Whether this is the host, whose tensors Java can read directly. */
    public boolean isHost() {
        return kind == Kind.HOST;
    }

    @Override
    public String toString() {
        return isHost() ? "host" : "cuda:" + index;
    }
}
