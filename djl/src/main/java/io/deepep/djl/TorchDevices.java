package io.deepep.djl;

import ai.djl.Device;
import ai.djl.engine.Engine;

/** Chooses the devices of ranks, and converts them between DJL and this library. */
public final class TorchDevices {
    private TorchDevices() {}

    /**
     * The number of GPUs that both libtorch and the driver see; 0 with a libtorch for CPUs. {@code
     * CUDA_VISIBLE_DEVICES} chooses them.
     */
    public static int numGpus() {
        // Before libtorch starts the driver, so that it starts with the variables we want.
        int numGpus = io.deepep.Device.numCudaDevices();
        Engine.getEngine("PyTorch");
        return LibTorch.hasCuda() ? numGpus : 0;
    }

    /** The device of a rank of this host: the GPUs in turn, or the CPU if there are none. */
    public static Device ofRank(int localRank) {
        int numGpus = numGpus();
        return numGpus == 0 ? Device.cpu() : Device.gpu(localRank % numGpus);
    }

    /** Converts a device, for {@link io.deepep.Buffer.Builder#device}. */
    public static io.deepep.Device deviceOf(Device device) {
        return device.isGpu()
                ? io.deepep.Device.cuda(device.getDeviceId())
                : io.deepep.Device.host();
    }
}
