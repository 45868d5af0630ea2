package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.LaunchStatus;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;

/**
 * What the launches of a low-latency call tell the host: nothing unless something fails. Several
 * runs may be under way; the first failure of them is kept.
 *
 * <p>Replays of a graph run the operation without the host, so a launch also notes itself in device
 * memory. The host looks there only once something has failed.
 */
final class LowLatencyStatus extends LaunchStatus {
    private final DevicePool.Block ran;
    private final CudaStream stream;

    /**
     * The block at the beginning of {@code slot}.
     *
     * @param ran where launches note themselves, a long of device memory
     * @param stream that they run on
     */
    LowLatencyStatus(
            PinnedSlots.Slot slot,
            DevicePool.Block ran,
            CudaStream stream,
            LowLatencyFaults faults) {
        super(slot, faults.timeouts(), faults::failure);
        this.ran = ran;
        this.stream = stream;
    }

    @Override
    public void fill(Params group) {
        super.fill(group);
        group.set("ran", ran.address());
    }

    /** Waits for the stream; of a closed one, what was seen last is the last. */
    @Override
    protected long lastRun() {
        synchronized (stream) {
            if (stream.isClosed()) {
                return super.lastRun();
            }
            stream.copy(memory.address() + DONE, ran.address(), Long.BYTES);
        }
        stream.awaitEnd();
        return super.lastRun();
    }
}
