package io.deepep.djl;

import ai.djl.Device;
import ai.djl.engine.Engine;

/** The devices that ranks have, as DJL and this library call them. */
public final class TorchDevices {
    private TorchDevices() {}

    /**
     * How many GPUs libtorch and the driver have: 0 with a libtorch for CPUs. {@code
     * CUDA_VISIBLE_DEVICES} says which.
     */
    public static int numGpus() {
        // Before libtorch starts the driver, so that it starts with the variables we want.
        int numGpus = io.deepep.Device.numCudaDevices();
        Engine.getEngine("PyTorch");
        return LibTorch.hasCuda() ? numGpus : 0;
    }

    /** A GPU for each rank of this host in turn, or the CPU where there is none. */
    public static Device ofRank(int localRank) {
        int numGpus = numGpus();
        return numGpus == 0 ? Device.cpu() : Device.gpu(localRank % numGpus);
    }

    /** For {@link io.deepep.Buffer.Builder#device}. */
    public static io.deepep.Device deviceOf(Device device) {
        return device.isGpu()
                ? io.deepep.Device.cuda(device.getDeviceId())
                : io.deepep.Device.host();
    }
}
