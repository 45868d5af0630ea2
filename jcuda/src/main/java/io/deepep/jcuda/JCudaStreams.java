package io.deepep.jcuda;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import jcuda.NativePointerObject;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaEvent_t;
import jcuda.runtime.cudaStream_t;

/**
 * Converts streams and events of JCuda to the library's, and back. Both sides refer to the same
 * object of the driver, which its creator must destroy after the last use; closing a stream or
 * event from here has no effect.
 *
 * <p>Types of the runtime API can be converted to those of the driver API, and back: {@code new
 * CUstream(cudaStream)}, {@code new cudaStream_t(cuStream)}; in the same way for events.
 *
 * <p>The library uses the primary context of each GPU, as the runtime API does. With the driver
 * API, retain that context ({@code cuDevicePrimaryCtxRetain}); streams, events and memory of a
 * context from {@code cuCtxCreate} cannot be used with it.
 */
public final class JCudaStreams {
    private JCudaStreams() {}

    /**
     * Converts a stream of the driver API, for {@link io.deepep.CallOptions#on}.
     *
     * @param device the GPU
     * @param stream a stream of the primary context of {@code device}; {@code new CUstream()} is
     *     the legacy default stream
     * @throws IllegalArgumentException if the stream belongs to another context
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Stream streamOf(Device device, CUstream stream) {
        return Stream.cuda(device, NativePointers.get(stream));
    }

    /**
     * Converts a stream of the runtime API, for {@link io.deepep.CallOptions#on}.
     *
     * @see #streamOf(Device, CUstream)
     */
    public static Stream streamOf(Device device, cudaStream_t stream) {
        return Stream.cuda(device, NativePointers.get(stream));
    }

    /**
     * Converts a stream of the library, such as {@link io.deepep.Buffer#communicationStream}, for
     * calls of JCuda.
     *
     * @throws UnsupportedOperationException if it is not a stream on a GPU
     */
    public static CUstream cuStreamOf(Stream stream) {
        return NativePointers.set(new CUstream(), stream.cudaHandle());
    }

    /**
     * Converts an event of the driver API, for {@link io.deepep.CallOptions#after}. A call waits
     * for the most recent record of the event before the call.
     *
     * @param device the GPU
     * @param event an event of the primary context of {@code device}
     * @throws IllegalArgumentException if it was never created
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Event eventOf(Device device, CUevent event) {
        return Event.cuda(device, created(event));
    }

    /**
     * Converts an event of the runtime API, for {@link io.deepep.CallOptions#after}.
     *
     * @see #eventOf(Device, CUevent)
     */
    public static Event eventOf(Device device, cudaEvent_t event) {
        return Event.cuda(device, created(event));
    }

    /**
     * Converts the event of a result, for JCuda's {@code cuStreamWaitEvent}. Keep the result
     * reachable until the wait is enqueued. Only {@link Event#synchronize} reports a failure of the
     * call.
     *
     * @throws UnsupportedOperationException if it is not an event on a GPU
     */
    public static CUevent cuEventOf(Event event) {
        return NativePointers.set(new CUevent(), event.cudaHandle());
    }

    private static long created(NativePointerObject event) {
        long handle = NativePointers.get(event);
        if (handle == 0) {
            throw new IllegalArgumentException(
                    "event " + event + " was not created; call cuEventCreate or cudaEventCreate");
        }
        return handle;
    }
}
