package io.deepep.spi;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;

/** The implementation behind {@link Buffer}, found by the service loader. */
public interface BufferProvider {
    /** Opens this rank's buffer. Collective. */
    Buffer open(BufferOptions options);

    /**
     * Opens this rank's buffer in a group whose other ranks keep theirs. Collective with their
     * {@link Buffer#admit}.
     */
    Buffer join(BufferOptions options);

    /** Bytes of NVL buffer that normal mode needs. */
    long normalNvlBytes(Config config, NormalLimits limits, EpTopology topology);

    /** Bytes of RDMA buffer that normal mode needs; 0 on one node. */
    long normalRdmaBytes(Config config, NormalLimits limits, EpTopology topology);

    /** Bytes of RDMA buffer that low-latency mode needs. */
    long lowLatencyRdmaBytes(LowLatencyLimits limits, EpTopology topology);

    /** Number of GPUs that the driver shows to this process; 0 without a driver. */
    int numCudaDevices();

    /**
     * The name of a GPU's NVLink domain, the same for all GPUs of the domain; empty if the domain
     * cannot extend beyond the host.
     */
    String nvlinkDomain(Device device);

    /** The model of a GPU, as the driver names it; empty if this process sees no such GPU. */
    String gpuName(Device device);

    /**
     * The bytes that the NVLink of a GPU carries per clock of its multiprocessors, divided by those
     * of an H200; 1 if that is less or not known.
     */
    double linkDemand(Device device);

    /**
     * Finds the provider.
     *
     * @throws io.deepep.error.DeepEpUnavailableException if there is none
     */
    static BufferProvider load() {
        return Providers.load(BufferProvider.class, "deepep", Providers.JLINK_LIBRARY);
    }
}
