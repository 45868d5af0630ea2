package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.DeviceEvent;

/** Makes a communication stream on a GPU wait for what calls come after. */
final class StreamOrder {
    private final CudaStream stream;

    /** The end of a compute stream when a call was made, used again by the next call. */
    private final CudaEvent entered;

    StreamOrder(CudaStream stream) {
        this.stream = stream;
        this.entered = CudaEvent.create(stream.context());
    }

    /** Later work comes after what the options name. */
    void start(CallOptions options) {
        if (options.previousEvent() != null) {
            joinStream(options.previousEvent());
        } else if (options.computeStream() != null) {
            joinCompute(options.computeStream());
        }
    }

    /** Whether work of {@code compute} is in order with calls by itself. */
    boolean isOwnStream(Stream compute) {
        return compute instanceof CudaStream cuda
                && cuda.device().equals(stream.device())
                && cuda.handle() == stream.handle();
    }

    /** Later work comes after the present work of the compute stream. */
    void joinCompute(Stream compute) {
        if (isOwnStream(compute)) {
            return;
        }
        if (compute instanceof CudaStream own && own.device().equals(stream.device())) {
            own.record(entered);
            stream.waitFor(entered);
        } else {
            joinStream(compute.record());
        }
    }

    private void joinStream(Event event) {
        if (event instanceof DeviceEvent) {
            stream.waitFor(event);
        } else if (!event.isDone()) {
            awaitEnd(event);
        }
    }

    /** Whether what a call comes after succeeds is no matter of the call, as on the host. */
    private static void awaitEnd(Event event) {
        try {
            event.synchronize();
        } catch (RuntimeException failure) {
            if (!event.isDone()) {
                throw failure;
            }
        }
    }
}
