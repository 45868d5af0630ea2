package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Device;
import io.deepep.GroupLimits;
import io.deepep.Network;
import io.deepep.Stream;
import io.deepep.buffer.memory.NetworkChoice;
import io.deepep.buffer.memory.NvshmemSettings;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.host.HostStream;
import io.deepep.normal.NormalConfigs;

/**
 * Refuses what the device of a buffer cannot do before anything is allocated, and chooses the
 * network of several nodes.
 */
final class OptionsChecks {
    private static final System.Logger LOG = System.getLogger(OptionsChecks.class.getName());

    private OptionsChecks() {}

    /** The options with the network that was chosen. */
    static BufferOptions resolve(BufferOptions options) {
        requireSize(options);
        if (options.device().isHost()) {
            requireStream(options, HostStream.class);
            return options;
        }
        CudaDriver.ensureAvailable();
        requireDevice(options.device().index());
        requireStream(options, CudaStream.class);
        return options.topology().isInternode() ? withNetwork(options) : options;
    }

    private static void requireSize(BufferOptions options) {
        Device.Kind kind = options.device().kind();
        if (options.normal() != null) {
            GroupLimits.normal(kind).require(options.topology());
            NormalConfigs.requireFor(options.topology(), options.dispatchConfig());
            NormalConfigs.requireFor(options.topology(), options.combineConfig());
        }
        if (options.lowLatency() != null) {
            GroupLimits.lowLatency(kind).require(options.topology());
        }
    }

    /** Settings that cannot be are refused here, where the other ranks learn it at once. */
    private static BufferOptions withNetwork(BufferOptions options) {
        BufferOptions chosen =
                options.with(
                        NetworkChoice.resolve(options),
                        options.numNvlBytes(),
                        options.numRdmaBytes());
        if (chosen.network() instanceof Network.Nvshmem nvshmem) {
            NvshmemOptions settings = NvshmemSettings.of(chosen, nvshmem);
            LOG.log(System.Logger.Level.DEBUG, "NVSHMEM: {0}", settings);
        }
        return chosen;
    }

    private static void requireStream(BufferOptions options, Class<? extends Stream> kind) {
        Stream given = options.communicationStream();
        if (given != null && !kind.isInstance(given)) {
            throw new IllegalArgumentException(
                    ("communicationStream is a %s, on which a buffer with device=%s cannot run; give a %s or"
                                    + " leave it out")
                            .formatted(
                                    given.getClass().getName(),
                                    options.device(),
                                    kind.getSimpleName()));
        }
    }

    private static void requireDevice(int index) {
        int numDevices = CudaDriver.numDevices();
        if (index >= numDevices) {
            throw new IllegalArgumentException(
                    ("device=cuda:%s is not one of the %s GPUs visible here; check CUDA_VISIBLE_DEVICES,"
                                    + " start fewer ranks, or let ranks share a GPU")
                            .formatted(index, numDevices));
        }
    }
}
