package io.deepep.cuda;

import io.deepep.Event;

/** An event that streams of a GPU can wait for without blocking the caller. */
public interface DeviceEvent extends Event {
    /** The driver's event beneath this one. */
    CudaEvent cudaEvent();

    @Override
    default long cudaHandle() {
        return cudaEvent().handle();
    }
}
