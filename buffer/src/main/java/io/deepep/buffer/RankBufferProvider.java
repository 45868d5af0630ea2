package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.LinkSpeed;
import io.deepep.cuda.NvlinkDomain;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.BufferProvider;
import java.util.Optional;

/** Opens {@link RankBuffer}s. */
public final class RankBufferProvider implements BufferProvider {
    /** For the service loader. */
    public RankBufferProvider() {}

    @Override
    public Buffer open(BufferOptions given) {
        return open(given, Handshake.OPEN);
    }

    @Override
    public Buffer join(BufferOptions given) {
        return open(given, Handshake.JOIN);
    }

    private static RankBuffer open(BufferOptions given, String operation) {
        BufferOptions options;
        BufferSizes sizes;
        try {
            CallObservers.requireFlightRecorder();
            BufferOptions chosen = OptionsChecks.resolve(given);
            sizes = BufferSizes.of(chosen);
            options = sizes.applyTo(chosen);
        } catch (RuntimeException unusable) {
            Handshake.refuse(given.communicator(), given, unusable);
            throw unusable;
        }
        Agreement agreement = Handshake.agree(operation, options, sizes);
        Resources resources =
                options.device().isHost()
                        ? HostResources.open(options, sizes, agreement.ranks())
                        : CudaResources.open(options, sizes, agreement.ranks());
        Membership membership = new Membership(options, sizes, agreement.buffer(), resources);
        if (!agreement.ranks().allNew()) {
            try {
                membership.join();
            } catch (RuntimeException | Error failure) {
                resources.close();
                throw failure;
            }
        }
        RankBuffer buffer = new RankBuffer(options, resources, membership);
        buffer.closeAtEndOfGroup();
        return buffer;
    }

    @Override
    public long normalNvlBytes(Config config, NormalLimits limits, EpTopology topology) {
        return NormalNvlLayout.of(limits, topology).layout().sizeBytes();
    }

    @Override
    public long normalRdmaBytes(Config config, NormalLimits limits, EpTopology topology) {
        return NormalRdmaLayout.of(config, limits, topology).layout().sizeBytes();
    }

    @Override
    public long lowLatencyRdmaBytes(LowLatencyLimits limits, EpTopology topology) {
        return LowLatencyLayout.of(limits, topology).layout().sizeBytes();
    }

    @Override
    public int numCudaDevices() {
        return CudaDriver.isAvailable() ? CudaDriver.numDevices() : 0;
    }

    /** Of a device that there is none, later steps speak. */
    private Optional<CudaDevice> gpu(Device device) {
        return device.isHost() || device.index() >= numCudaDevices()
                ? Optional.empty()
                : Optional.of(CudaDevice.of(device.index()));
    }

    @Override
    public String nvlinkDomain(Device device) {
        return gpu(device)
                .flatMap(gpu -> NvlinkDomain.of(PciAddress.parse(gpu.pciBusId())))
                .map(NvlinkDomain::toString)
                .orElse("");
    }

    @Override
    public String gpuName(Device device) {
        return gpu(device).map(CudaDevice::name).orElse("");
    }

    @Override
    public double linkDemand(Device device) {
        return gpu(device).flatMap(LinkSpeed::of).map(LinkSpeed::demand).orElse(1.0);
    }
}
