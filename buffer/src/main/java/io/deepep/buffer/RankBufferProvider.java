package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.cuda.CudaDriver;
import io.deepep.spi.BufferProvider;

/** Opens {@link RankBuffer}s. */
public final class RankBufferProvider implements BufferProvider {
    /** For the service loader. */
    public RankBufferProvider() {}

    @Override
    public Buffer open(BufferOptions given) {
        BufferOptions options;
        BufferSizes sizes;
        try {
            BufferOptions chosen = OptionsChecks.resolve(given);
            sizes = BufferSizes.of(chosen);
            options = sizes.applyTo(chosen);
        } catch (RuntimeException unusable) {
            Handshake.refuse(given, unusable);
            throw unusable;
        }
        Handshake.agree(options, sizes);
        Resources resources =
                options.device().isHost()
                        ? HostResources.open(options, sizes)
                        : CudaResources.open(options, sizes);
        RankBuffer buffer = new RankBuffer(options, resources);
        buffer.closeAtEndOfGroup();
        return buffer;
    }

    @Override
    public long normalNvlBytes(Config config, NormalLimits limits, EpTopology topology) {
        return BufferSizes.normalNvl(limits, topology);
    }

    @Override
    public long normalRdmaBytes(Config config, NormalLimits limits, EpTopology topology) {
        return BufferSizes.normalRdma(config, limits, topology);
    }

    @Override
    public long lowLatencyRdmaBytes(LowLatencyLimits limits, EpTopology topology) {
        return BufferSizes.lowLatencyRdma(limits, topology);
    }

    @Override
    public int numCudaDevices() {
        return CudaDriver.isAvailable() ? CudaDriver.numDevices() : 0;
    }
}
