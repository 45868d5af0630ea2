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
 * Streams and events of JCuda as the library's, and back. Both sides name the same object of the
 * driver, and whoever created it destroys it: closing a stream or event from here does nothing.
 *
 * <p>The runtime API's types have twins in the driver's: {@code new CUstream(cudaStream)}, {@code
 * new cudaStream_t(cuStream)}, and so for events.
 *
 * <p>Contexts: the library lives in each GPU's primary context, as the runtime API does. With the
 * driver API retain that one ({@code cuDevicePrimaryCtxRetain}); streams, events and memory of a
 * context of {@code cuCtxCreate} do not mix with it.
 */
public final class JCudaStreams {
    private JCudaStreams() {}

    /**
     * A stream for {@link io.deepep.CallOptions#on}.
     *
     * @param stream of {@code device}'s primary context; {@code new CUstream()} is the legacy
     *     default stream
     * @throws IllegalArgumentException if the stream belongs to another context
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Stream streamOf(Device device, CUstream stream) {
        return Stream.cuda(device, NativePointers.get(stream));
    }

    /** {@link #streamOf(Device, CUstream)} for a stream of the runtime API. */
    public static Stream streamOf(Device device, cudaStream_t stream) {
        return Stream.cuda(device, NativePointers.get(stream));
    }

    /**
     * A stream of the library, such as {@link io.deepep.Buffer#communicationStream}, for JCuda's
     * calls.
     *
     * @throws UnsupportedOperationException if it is no stream of a GPU
     */
    public static CUstream cuStreamOf(Stream stream) {
        return NativePointers.set(new CUstream(), stream.cudaHandle());
    }

    /**
     * An event for {@link io.deepep.CallOptions#after}: what it was recorded for last when the call
     * is made is waited for.
     *
     * @param event of {@code device}'s primary context
     * @throws IllegalArgumentException if it was never created
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Event eventOf(Device device, CUevent event) {
        return Event.cuda(device, created(event));
    }

    /** {@link #eventOf(Device, CUevent)} for an event of the runtime API. */
    public static Event eventOf(Device device, cudaEvent_t event) {
        return Event.cuda(device, created(event));
    }

    /**
     * A result's event for JCuda's {@code cuStreamWaitEvent}. Keep the result reachable until the
     * wait is enqueued. What went wrong in the call only {@link Event#synchronize} tells.
     *
     * @throws UnsupportedOperationException if it is no event of a GPU
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
