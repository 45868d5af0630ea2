package io.deepep.djl;

import ai.djl.Device;
import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.Stream;

/**
 * Ordering of calls against libtorch's operations. On a GPU those are enqueued on the current
 * stream of the calling thread; on the CPU they have finished when they return.
 */
public final class TorchStreams {
    private TorchStreams() {}

    /**
     * The stream of {@code device} that this thread's libtorch operations run on.
     *
     * @param device a GPU
     * @throws io.deepep.error.DeepEpUnavailableException if libtorch has no CUDA
     */
    public static Stream current(Device device) {
        if (!device.isGpu()) {
            throw new IllegalArgumentException(
                    "device="
                            + device
                            + " has no streams; its operations are done when they return");
        }
        int index = device.getDeviceId();
        return Stream.cuda(io.deepep.Device.cuda(index), LibTorch.currentCudaStream(index));
    }

    /** A call that comes between this thread's libtorch operations so far and its later ones. */
    public static CallOptions between(Device device) {
        return device.isGpu() ? CallOptions.sync().on(current(device)) : CallOptions.sync();
    }

    /**
     * A call that comes after this thread's libtorch operations so far; later ones run beside it
     * until {@link #await}.
     */
    public static CallOptions after(Device device) {
        return device.isGpu() ? CallOptions.async().on(current(device)) : CallOptions.async();
    }

    /**
     * Has this thread's later libtorch operations come after {@code event}. On the CPU this waits,
     * and throws what went wrong in the call; on a GPU {@code event.synchronize()} tells.
     */
    public static void await(Device device, Event event) {
        if (device.isGpu()) {
            current(device).waitFor(event);
        } else {
            event.synchronize();
        }
    }
}
