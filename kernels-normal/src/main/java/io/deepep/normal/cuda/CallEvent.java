package io.deepep.normal.cuda;

import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.DeviceEvent;

/**
 * The end of a prepared operation's latest run; waiting for it on the host reports what went wrong
 * on the GPU.
 */
final class CallEvent implements DeviceEvent {
    private final CudaEvent event;
    private final Runnable check;

    CallEvent(CudaEvent event, Runnable check) {
        this.event = event;
        this.check = check;
    }

    @Override
    public CudaEvent cudaEvent() {
        return event;
    }

    @Override
    public boolean isDone() {
        return event.isDone();
    }

    @Override
    public void synchronize() {
        event.synchronize();
        check.run();
    }
}
