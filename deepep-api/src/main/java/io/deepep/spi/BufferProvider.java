package io.deepep.spi;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.error.DeepEpUnavailableException;
import java.util.ServiceLoader;

/** The implementation behind {@link Buffer}, found by {@link ServiceLoader}. */
public interface BufferProvider {
    /** Opens one rank's buffer; collective. */
    Buffer open(BufferOptions options);

    /** Opens one rank's buffer beside ranks that keep theirs; collective with their admit. */
    Buffer join(BufferOptions options);

    /** Bytes of NVL buffer that normal mode needs. */
    long normalNvlBytes(Config config, NormalLimits limits, EpTopology topology);

    /** Bytes of RDMA buffer that normal mode needs; 0 on one node. */
    long normalRdmaBytes(Config config, NormalLimits limits, EpTopology topology);

    /** Bytes of RDMA buffer that low-latency mode needs. */
    long lowLatencyRdmaBytes(LowLatencyLimits limits, EpTopology topology);

    /** GPUs that the driver shows to this process; 0 without a driver. */
    int numCudaDevices();

    /**
     * The name of a GPU's NVLink domain, which all of its GPUs have in common, if the domain may
     * reach beyond a host; otherwise empty.
     */
    String nvlinkDomain(Device device);

    /** The model of a GPU, as the driver names it; empty if there is no such GPU here. */
    String gpuName(Device device);

    /**
     * How many bytes the NVLink of a GPU carries in a clock of its multiprocessors, compared with
     * an H200; 1 if that is less, or not known.
     */
    double linkDemand(Device device);

    /** The provider on the class path. */
    static BufferProvider load() {
        return ServiceLoader.load(BufferProvider.class, BufferProvider.class.getClassLoader())
                .findFirst()
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        "no implementation of "
                                                + BufferProvider.class.getName()
                                                + " on the class path",
                                        "add the artifact io.deepep:deepep-buffer",
                                        null));
    }
}
