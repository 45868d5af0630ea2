package io.deepep.cuda;

import io.deepep.spi.Operation;

/**
 * An operation that runs on a GPU's stream: begin enqueues it, and waits only for the shape of its
 * result; complete waits for the GPU and reports what went wrong there.
 *
 * @param <R> the result record
 */
public interface CudaOperation<R> extends Operation<R> {
    /**
     * The end of the latest run; the same object for every run. Its synchronize throws what
     * complete would.
     */
    DeviceEvent event();
}
