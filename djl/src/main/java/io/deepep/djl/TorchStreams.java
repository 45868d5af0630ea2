package io.deepep.djl;

import ai.djl.Device;
import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.Stream;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Orders calls with respect to libtorch's operations. On a GPU, these are enqueued on the current
 * stream of the calling thread; on the CPU, they have finished when they return.
 */
public final class TorchStreams {
    private TorchStreams() {}

    /**
     * The stream of {@code device} on which libtorch operations of this thread run.
     *
     * @param device a GPU
     * @throws io.deepep.error.DeepEpUnavailableException if libtorch has no CUDA
     */
    public static Stream current(Device device) {
        if (!device.isGpu()) {
            throw new IllegalArgumentException(
                    "device=%s has no streams; its operations have finished when they return"
                            .formatted(device));
        }
        int index = device.getDeviceId();
        return Stream.cuda(io.deepep.Device.cuda(index), LibTorch.currentCudaStream(index));
    }

    /** Until it is closed, libtorch operations of this thread run on a stream, see {@link #use}. */
    public interface Use extends AutoCloseable {
        /** Makes that stream current which was before. By the same thread. Idempotent. */
        @Override
        void close();
    }

    /**
     * Makes a stream the {@link #current} one of this thread. It first waits for what is on the
     * current one now, and that one for what is on this stream when it becomes current again.
     *
     * @param stream of a GPU
     */
    public static Use use(Stream stream) {
        if (stream.device().isHost()) {
            throw new IllegalArgumentException(
                    "a stream on host cannot be current; libtorch's operations on the CPU have finished when they return");
        }
        int index = stream.device().index();
        stream.waitFor(current(Device.gpu(index)).record());
        long guard = LibTorch.createStreamGuard(stream.cudaHandle(), index);
        AtomicBoolean closed = new AtomicBoolean();
        return () -> {
            if (closed.compareAndSet(false, true)) {
                giveBack(stream, guard);
            }
        };
    }

    private static void giveBack(Stream used, long guard) {
        Event last;
        try {
            last = used.record();
        } finally {
            LibTorch.deleteStreamGuard(guard);
        }
        current(Device.gpu(used.device().index())).waitFor(last);
    }

    /**
     * Options of a call that runs after this thread's libtorch operations so far, and before its
     * later ones.
     */
    public static CallOptions between(Device device) {
        return device.isGpu() ? CallOptions.sync().on(current(device)) : CallOptions.sync();
    }

    /**
     * Options of a call that runs after this thread's libtorch operations so far, but concurrently
     * with its later ones until {@link #await}.
     */
    public static CallOptions after(Device device) {
        return device.isGpu() ? CallOptions.async().on(current(device)) : CallOptions.async();
    }

    /**
     * Makes this thread's later libtorch operations run after {@code event}. On the CPU this waits,
     * and throws the failure of the call; on a GPU only {@code event.synchronize()} throws it.
     */
    public static void await(Device device, Event event) {
        if (device.isGpu()) {
            current(device).waitFor(event);
        } else {
            event.synchronize();
        }
    }
}
